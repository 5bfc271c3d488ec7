"""The security settings of --command-config: which keys are honoured, and which are refused."""

from __future__ import annotations

import ssl

import pytest

from quorate.cli.client.client_properties import client_security
from quorate.cli.client.errors import Refused
from quorate.cli.client.sasl_login import SaslLogin
from tests.certificates import ALICE, Files, authority, certificate, files


@pytest.fixture(scope="module")
def alice(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files(tmp_path_factory.mktemp("alice") / "files", certificate(ALICE))


def context(**entries: str) -> ssl.SSLContext:
    """Return the context of these entries; `_` in a name is `.`."""
    client = {name.replace("_", "."): value for name, value in entries.items()}
    found = client_security({"security.protocol": "SSL", **client}).tls
    assert found is not None
    return found


def test_without_a_protocol_nothing_is_encrypted() -> None:
    assert client_security({}).tls is None
    assert client_security({"security.protocol": "plaintext"}).tls is None


def test_keys_that_are_not_about_security_are_ignored() -> None:
    assert client_security({"acks": "all", "linger.ms": "5", "group.id": "x"}).tls is None


@pytest.mark.parametrize("kind", ["java file", "java text", "librdkafka file", "librdkafka text"])
def test_the_certificates_of_both_families(alice: Files, kind: str) -> None:
    ca, key, own = (each.read_text() for each in (alice.ca, alice.key, alice.certificate))
    entries = {
        "java file": {
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": str(alice.ca),
            "ssl_keystore_type": "PEM",
            "ssl_keystore_location": str(alice.keystore),
        },
        "java text": {
            "ssl_truststore_type": "PEM",
            "ssl_truststore_certificates": ca,
            "ssl_keystore_type": "PEM",
            "ssl_keystore_key": key,
            "ssl_keystore_certificate_chain": own,
        },
        "librdkafka file": {
            "ssl_ca_location": str(alice.ca),
            "ssl_key_location": str(alice.key),
            "ssl_certificate_location": str(alice.certificate),
        },
        "librdkafka text": {"ssl_ca_pem": ca, "ssl_key_pem": key, "ssl_certificate_pem": own},
    }[kind]
    found = context(**entries)
    (trusted,) = found.get_ca_certs(binary_form=True)
    assert trusted == ssl.PEM_cert_to_DER_cert(authority().certificate_pem.decode())


@pytest.mark.parametrize(
    ("entries", "verifies", "compares"),
    [
        ({}, True, True),
        ({"ssl_endpoint_identification_algorithm": "https"}, True, True),
        ({"ssl_endpoint_identification_algorithm": "https "}, True, True),
        ({"enable_ssl_certificate_verification": "true "}, True, True),
        ({"ssl_endpoint_identification_algorithm": ""}, True, False),
        ({"ssl_endpoint_identification_algorithm": "none"}, True, False),
        ({"enable_ssl_certificate_verification": "false"}, False, False),
    ],
)
def test_certificates_and_host_names_are_checked_unless_the_file_says_otherwise(
    entries: dict[str, str], verifies: bool, compares: bool
) -> None:
    found = context(**entries)
    assert (found.verify_mode is ssl.CERT_REQUIRED, found.check_hostname) == (verifies, compares)


def test_versions_and_suites() -> None:
    found = context(ssl_enabled_protocols="TLSv1.2", ssl_protocol="TLSv1.3")
    assert found.maximum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("security.protocol", "SASL", "must be one of PLAINTEXT, SSL"),
        ("security.providers", "x", "does not support this key"),
        ("sasl.login.class", "x", "does not support this key"),
        ("ssl.crl.location", "/x", "does not support this key"),
        ("ssl.engine.factory.class", "x", "does not support this key"),
        ("ssl.client.auth", "none", "does not support this key"),
        ("ssl.truststor.location", "/x", "does not support this key"),
        ("enable.sasl.oauthbearer.unsecure.jwt", "true", "does not support this key"),
        ("enable.ssl.certificate.verification", "no", "must be one of true, false"),
        ("ssl.endpoint.identification.algorithm", "HTTP", "must be one of https, none, empty"),
        ("ssl.enabled.protocols", "SSLv3", "must be one of TLSv1.2, TLSv1.3"),
        ("ssl.ca.location", "/does/not/exist", "No such file"),
        ("ssl.ca.pem", "nothing", "has no certificate"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(name: str, value: str, message: str) -> None:
    entries = {"security.protocol": "SSL", name: value}
    with pytest.raises(Refused, match=message) as raised:
        client_security(entries)
    assert name in raised.value.message or name == "ssl.ca.pem"


def test_a_key_about_security_is_refused_without_a_protocol_too() -> None:
    with pytest.raises(Refused, match=r"sasl\.login\.class"):
        client_security({"sasl.login.class": "x"})


JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.parametrize(
    "entries",
    [
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "u", "sasl.password": "canary"},
        {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "u", "sasl.password": "canary"},
        {
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{JAAS} username="u" password="canary";',
        },
    ],
)
def test_the_login_of_both_families(entries: dict[str, str]) -> None:
    found = client_security({"security.protocol": "SASL_PLAINTEXT", **entries})
    assert found.login == SaslLogin("SCRAM-SHA-256", "u", "canary")
    assert found.tls is None
    assert "canary" not in repr(found)
    assert client_security({"security.protocol": "SASL_SSL", **entries}).tls is not None
    assert client_security({"security.protocol": "PLAINTEXT", **entries}).login is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"sasl.username": "u", "sasl.password": "canary"}, "default is GSSAPI"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs tokens of a provider"),
        ({"sasl.mechanism": "PLAIN", "sasl.username": "u"}, "must name a user"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": "canary"}, "is no JAAS value"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{JAAS} password="canary";'},
            "must begin with org.apache.kafka.common.security.plain",
        ),
        (
            {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f'{JAAS} x="canary";'},
            "may only have the options",
        ),
        ({"sasl.kerberos.service.name": "kafka"}, "does not support this key"),
    ],
)
def test_a_login_that_cannot_be_honoured_is_refused(entries: dict[str, str], message: str) -> None:
    with pytest.raises(Refused) as error:
        client_security({"security.protocol": "SASL_PLAINTEXT", **entries})
    assert message in str(error.value)
    assert "canary" not in str(error.value)
