"""The configuration keys of TLS listeners. Each of them may have the prefix of one listener
(`listener_keys.py`).

Kafka's other `ssl.` keys choose Java classes and are refused (`refused_keys.py`).
"""

from __future__ import annotations

from quorate.config.key import Key, Kind, one_of, some_of
from quorate.config.principal_mapping import check_rules

STRING, LIST, PASSWORD = Kind.STRING, Kind.LIST, Kind.PASSWORD
STORE_TYPES = ("JKS", "PKCS12", "PEM")
CLIENT_AUTH = ("none", "requested", "required")
TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
CIPHER_SUITES = {
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""OpenSSL's name of each supported suite of TLS 1.2, by the name of IANA, which Kafka uses. The
suites of TLS 1.3 have an empty name, because Python cannot choose among them."""

TLS = (
    Key(
        "ssl.keystore.type",
        STRING,
        "JKS",
        "The format of the keystore: PEM or PKCS12. With JKS, the file must be PKCS12 too.",
        one_of(*STORE_TYPES),
    ),
    Key("ssl.keystore.location", STRING, None, "The file with the key and its certificates."),
    Key("ssl.keystore.password", PASSWORD, None, "The password of the PKCS12 keystore."),
    Key("ssl.key.password", PASSWORD, None, "The password of an encrypted key in PEM."),
    Key("ssl.keystore.key", PASSWORD, None, "The key in PEM, instead of a file."),
    Key(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        "The certificate of ssl.keystore.key and those of its issuers in PEM, instead of a file.",
    ),
    Key(
        "ssl.truststore.type",
        STRING,
        "JKS",
        "The format of the truststore: PEM or PKCS12. With JKS, the file must be PKCS12 too.",
        one_of(*STORE_TYPES),
    ),
    Key(
        "ssl.truststore.location",
        STRING,
        None,
        "The file with the certificates that issue those of clients.",
    ),
    Key("ssl.truststore.password", PASSWORD, None, "The password of the PKCS12 truststore."),
    Key(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        "The certificates of the truststore in PEM, instead of a file.",
    ),
    Key(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients must have a certificate: none, requested or required.",
        one_of(*CLIENT_AUTH),
    ),
    Key(
        "ssl.enabled.protocols",
        LIST,
        (TLS_1_2, TLS_1_3),
        "The versions of TLS.",
        some_of(TLS_1_2, TLS_1_3),
    ),
    Key(
        "ssl.cipher.suites",
        LIST,
        (),
        "The cipher suites, by their names of IANA. Default: those with ECDHE and AES-GCM or "
        "CHACHA20.",
        one_of(*CIPHER_SUITES),
    ),
    Key(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "The rules that change the subject of a client's certificate to a user name.",
        check_rules,
    ),
    Key(
        "ssl.allow.dn.changes",
        Kind.BOOLEAN,
        False,
        "Whether a certificate that is read again may have another subject.",
    ),
    Key(
        "ssl.allow.san.changes",
        Kind.BOOLEAN,
        False,
        "Whether a certificate that is read again may lack names that the one in use has.",
    ),
)
