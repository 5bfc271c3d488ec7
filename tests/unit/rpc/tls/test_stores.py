"""Keystores and truststores in every format, and what is refused with which sentence."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)

from quorate.config.key import ConfigError
from quorate.quorum.rpc.tls.context import server_context
from quorate.quorum.rpc.tls.issuing import Issued
from quorate.quorum.rpc.tls.settings import TlsSettings
from tests.certificates import ALICE, authority, certificate
from tests.unit.rpc.tls.test_tls_protocol import node, settings_of

PASSWORD = "secret of the test"


def with_keystore(**changes: object) -> TlsSettings:
    base = settings_of()
    store = replace(base.keystore, pem=None)
    return replace(base, keystore=replace(store, **changes))  # type: ignore[arg-type]


def with_truststore(**changes: object) -> TlsSettings:
    base = settings_of("required")
    store = replace(base.truststore, pem=None)
    return replace(base, truststore=replace(store, **changes))  # type: ignore[arg-type]


def pkcs12(issued: Issued) -> bytes:
    return serialize_key_and_certificates(
        b"node",
        issued.key,
        issued.certificate,
        [authority().certificate],
        BestAvailableEncryption(PASSWORD.encode()),
    )


def shaken(context: ssl.SSLContext, client: ssl.SSLContext | None = None) -> str:
    """Do a handshake in memory. Return the version and the cipher suite."""
    if client is None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.load_verify_locations(cadata=authority().certificate_pem.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        context.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    ]
    for _ in range(10):
        done = True
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                done = False
        if done:
            cipher = ends[1].cipher()
            assert cipher is not None
            return f"{ends[1].version()} {cipher[0]}"
    raise AssertionError("the handshake does not end")


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_pkcs12_keystore_also_if_the_type_says_jks(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "node.p12"
    file.write_bytes(pkcs12(node()))
    settings = with_keystore(type=kind, location=str(file), password=PASSWORD)
    assert shaken(server_context(settings)).startswith("TLSv1.3")


def test_a_wrong_password_of_a_keystore(tmp_path: Path) -> None:
    file = tmp_path / "node.p12"
    file.write_bytes(pkcs12(node()))
    with pytest.raises(ConfigError, match=r"cannot be opened with ssl\.keystore\.password") as told:
        server_context(with_keystore(type="PKCS12", location=str(file), password="wrong one"))
    assert "wrong one" not in str(told.value)


def test_the_password_of_an_encrypted_key(tmp_path: Path) -> None:
    file = tmp_path / "keystore.pem"
    encrypted = node().key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
    )
    file.write_bytes(encrypted + node().certificate_pem)
    shaken(server_context(with_keystore(location=str(file), key_password=PASSWORD)))
    for wrong in ("wrong one", None):
        with pytest.raises(ConfigError, match=r"belong together, and ssl\.key\.pass"):
            server_context(with_keystore(location=str(file), key_password=wrong))


def test_a_key_of_another_certificate() -> None:
    text = certificate("CN=other").key_pem + node().certificate_pem
    with pytest.raises(ConfigError, match="Check that they belong together"):
        server_context(with_keystore(pem=text.decode()))


def test_a_truststore_of_keytool(tmp_path: Path) -> None:
    """keytool marks the certificates of a truststore with an attribute of Java."""
    file = tmp_path / "trust.p12"
    entry = PKCS12Certificate(authority().certificate, b"ca")
    file.write_bytes(serialize_java_truststore([entry], BestAvailableEncryption(PASSWORD.encode())))
    settings = with_truststore(type="PKCS12", location=str(file), password=PASSWORD)
    context = server_context(settings)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=authority().certificate_pem.decode())
    own = tmp_path / "alice.pem"
    own.write_bytes(certificate(ALICE).keystore_pem)
    client.load_cert_chain(own)
    shaken(context, client)


def test_an_intermediate_certificate_in_the_truststore_is_enough(tmp_path: Path) -> None:
    """Java trusts each certificate of a truststore."""
    own = certificate(ALICE)
    settings = with_truststore(pem=own.certificate_pem.decode())
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=authority().certificate_pem.decode())
    file = tmp_path / "alice.pem"
    file.write_bytes(own.keystore_pem)
    client.load_cert_chain(file)
    shaken(server_context(settings), client)


def jks(tmp: Path) -> TlsSettings:
    file = tmp / "node.jks"
    file.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    return with_keystore(type="JKS", location=str(file), password=PASSWORD)


def large(tmp: Path) -> TlsSettings:
    file = tmp / "large.pem"
    file.write_bytes(bytes((4 << 20) + 1))
    return with_keystore(location=str(file))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (jks, r"keytool -importkeystore .* -deststoretype PKCS12"),
        (large, "has more than 4194304 bytes"),
        (lambda tmp: with_keystore(location=str(tmp / "none.pem")), "No such file"),
        (lambda tmp: with_keystore(), "either this file or the texts"),
        (lambda tmp: with_keystore(pem="x", location="y"), "either this file or the texts"),
        (lambda tmp: with_keystore(pem="x"), "cannot be used"),
        (lambda tmp: with_keystore(pem="x", password="y"), "must not be set for PEM"),
        (lambda tmp: with_keystore(type="PKCS12"), "must be set, or ssl.keystore.type must be PEM"),
        (lambda tmp: with_truststore(pem="nothing"), "has no certificate"),
        (lambda tmp: with_truststore(), "ssl.client.auth: value 'required' needs ssl.truststore"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    settings: Callable[[Path], TlsSettings], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        server_context(settings(tmp_path))


def test_no_password_is_asked_for_at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """OpenSSL would, if load_cert_chain got no password."""
    given = []
    load = ssl.SSLContext.load_cert_chain

    def recorded(self: ssl.SSLContext, path: str, **options: object) -> None:
        given.append(options["password"])
        load(self, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", recorded)
    server_context(settings_of())
    assert given == [""]


@pytest.mark.parametrize(
    ("suites", "protocols", "shared"),
    [
        ((), ("TLSv1.2",), "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384"),
        (("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",), (), "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256"),
        (
            (
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
            ),
            (),
            "TLSv1.3 TLS_AES_256_GCM_SHA384",
        ),
        ((), ("TLSv1.3",), "TLSv1.3 TLS_AES_256_GCM_SHA384"),
    ],
)
def test_versions_and_cipher_suites(
    suites: tuple[str, ...], protocols: tuple[str, ...], shared: str
) -> None:
    settings = replace(settings_of(protocols=protocols), cipher_suites=suites)
    assert shaken(server_context(settings)) == shared


@pytest.mark.parametrize(
    ("suites", "protocols", "message"),
    [
        (("TLS_AES_128_GCM_SHA256",), (), "must name all of"),
        (("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",), ("TLSv1.3",), "has no suite of a version"),
    ],
)
def test_suites_that_python_cannot_choose(
    suites: tuple[str, ...], protocols: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        server_context(replace(settings_of(protocols=protocols), cipher_suites=suites))


def test_the_options_of_a_context_that_verifies_clients() -> None:
    context = server_context(settings_of("required"))
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_TICKET and context.num_tickets == 0
    assert server_context(settings_of()).options & ssl.OP_NO_RENEGOTIATION
