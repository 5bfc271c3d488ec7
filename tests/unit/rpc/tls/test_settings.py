"""Each `ssl.` key of a node's file reaches the listener that it is for."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from quorate.config.key import ConfigError
from quorate.config.listeners import Listener
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.rpc.tls.identity import IdentityRefused, identity_of
from quorate.quorum.rpc.tls.listener_tls import tls_listeners
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.seams import ANONYMOUS_PEER
from tests.certificates import ALICE, certificate
from tests.unit.config.test_tls_keys import SECURE
from tests.unit.rpc.kafka.fakes import FakeClock

TEXTS = {
    "keystore.type": "PEM",
    "keystore.location": "/keystore",
    "keystore.password": "p1",
    "key.password": "p2",
    "keystore.key": "KEY",
    "keystore.certificate.chain": "CHAIN",
    "truststore.type": "PKCS12",
    "truststore.location": "/truststore",
    "truststore.password": "p3",
    "truststore.certificates": "TRUSTED",
    "client.auth": "requested",
    "enabled.protocols": "TLSv1.2",
    "cipher.suites": "TLS_AES_128_GCM_SHA256",
    "allow.dn.changes": "true",
    "principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/",
}


class Session:
    """The session of a peer with this certificate, or with none."""

    def __init__(self, encoded: bytes | None) -> None:
        self._encoded = encoded

    def getpeercert(self, binary_form: bool = False) -> bytes | None:
        assert binary_form
        return self._encoded


def loaded(**more: str) -> NodeConfig:
    own = {f"listener.name.out.ssl.{name.replace('_', '.')}": each for name, each in more.items()}
    return load(None, environment={}, overrides={**SECURE, **own}, hostname="here")


def settings_of(listener: str) -> TlsSettings:
    return TlsSettings.of(partial(loaded(**TEXTS).of_listener, listener))


def test_each_key_reaches_its_setting() -> None:
    found = settings_of("OUT")
    key, trust = found.keystore, found.truststore
    assert (key.type, key.location, key.password) == ("PEM", "/keystore", "p1")
    assert (key.key_password, key.pem) == ("p2", "KEY\nCHAIN")
    assert (trust.type, trust.location, trust.password) == ("PKCS12", "/truststore", "p3")
    assert trust.pem == "TRUSTED"
    assert (found.client_auth, found.protocols) == ("requested", ("TLSv1.2",))
    assert found.cipher_suites == ("TLS_AES_128_GCM_SHA256",)
    assert (found.allow_dn_changes, found.allow_san_changes) == (True, False)
    names = loaded(**TEXTS, **{"allow.san.changes": "true"})
    assert TlsSettings.of(partial(names.of_listener, "OUT")).allow_san_changes
    other = settings_of("IN.SIDE")
    assert (other.keystore.location, other.keystore.pem, other.client_auth) == (
        "/of/all",
        None,
        "none",
    )


def test_passwords_are_not_in_the_text_of_the_settings() -> None:
    found = settings_of("OUT")
    for secret in ("p1", "p2", "p3", "KEY", "CHAIN", "TRUSTED"):
        assert f"'{secret}" not in repr(found)


def test_the_rules_give_the_principal() -> None:
    rules = settings_of("OUT").rules
    uri = "quorate://cluster/node/1"
    encoded = certificate(ALICE, uris=[uri]).certificate.public_bytes(Encoding.DER)
    found = identity_of(Session(encoded), rules)  # type: ignore[arg-type]
    assert (str(found.principal), found.uris, found.verified) == ("User:alice", (uri,), True)
    assert identity_of(Session(None), rules) is ANONYMOUS_PEER  # type: ignore[arg-type]


@pytest.mark.parametrize("subject", ["CN=alice", "CN=" + "a" * 60 + ",OU=x" * 500])
def test_a_certificate_without_a_principal_is_refused(subject: str) -> None:
    """No rule matches, or the subject is too long for the patterns."""
    rules = settings_of("OUT").rules
    encoded = certificate(subject).certificate.public_bytes(Encoding.DER)
    with pytest.raises(IdentityRefused):
        identity_of(Session(encoded), rules)  # type: ignore[arg-type]
    with pytest.raises(IdentityRefused, match="cannot be read"):
        identity_of(Session(b"\x30\x03\x02\x01\x01"), rules)  # type: ignore[arg-type]


def test_an_error_names_the_listener(tmp_path: Path) -> None:
    config = loaded(keystore_type="PEM", keystore_location=str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"^listener OUT: ssl\.keystore\.location: .*No such"):
        tls_listeners(config, [Listener("OUT", "", 1)], FakeClock())
    assert tls_listeners(config, [Listener("REPLICATION", "", 1)], FakeClock()) == {}


@pytest.mark.parametrize("own", [None, "requested"])
def test_a_listener_with_sasl_obeys_only_the_key_with_its_prefix(
    own: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-684: a demand for certificates would lock out the users of SASL."""
    store = tmp_path / "node.pem"
    store.write_bytes(certificate("CN=node").keystore_pem)
    more = {} if own is None else {"listener.name.out.ssl.client.auth": own}
    settings = {
        **SECURE,
        "listener.security.protocol.map": "IN.SIDE:SSL,OUT:SASL_SSL,REPLICATION:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificate("CN=ca").certificate_pem.decode(),
        **more,
    }
    config = load(None, environment={}, overrides=settings, hostname="here")
    found = tls_listeners(config, [Listener("OUT", "", 1), Listener("IN.SIDE", "", 2)], FakeClock())
    modes = [found[name]._loaded.context.verify_mode for name in ("IN.SIDE", "OUT")]
    assert modes == [ssl.CERT_REQUIRED, ssl.CERT_NONE if own is None else ssl.CERT_OPTIONAL]
    warned = "ssl.client.auth=required does not apply to listener OUT" in caplog.text
    assert warned == (own is None)
