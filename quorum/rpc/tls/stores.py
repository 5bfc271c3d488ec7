"""Reads keystores and truststores: PEM from files and from settings, and PKCS12 files.

Java also reads a PKCS12 file if the type says JKS, and so does this module. Files in Java's own
format JKS are refused, because no maintained library for Python reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.config.key import ConfigError
from quorate.quorum.rpc.tls.settings import StoreSettings

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

MAX_STORE_BYTES = 4 << 20
JKS_MAGIC = b"\xfe\xed\xfe\xed"
PEM = "PEM"


def read_keystore(store: StoreSettings) -> bytes:
    """Return the key, its certificate and those of its issuers as PEM. The key may be encrypted
    with `store.key_password`, if the store is PEM.

    Blocks. Raise ConfigError if the store is missing, cannot be read, or has no key."""
    if store.type == PEM:
        return _pem(store)
    from cryptography.hazmat.primitives import serialization

    content = _pkcs12(store)
    if content.key is None or content.cert is None:
        raise ConfigError(f"{store.prefix}.location: {store.location} has no key and certificate")
    key = content.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain = [content.cert.certificate, *(each.certificate for each in content.additional_certs)]
    return key + _encoded(chain)


def read_truststore(store: StoreSettings) -> str | None:
    """Return the trusted certificates as PEM, or None if no truststore is set.

    Blocks. Raise ConfigError if the store cannot be read or has no certificate."""
    if store.location is None and store.pem is None:
        return None
    if store.type == PEM:
        text = _pem(store).decode("ascii", "replace")
    else:
        content = _pkcs12(store)
        own = [] if content.cert is None else [content.cert]
        every = (each.certificate for each in (*own, *content.additional_certs))
        text = _encoded(every).decode()
    if "BEGIN CERTIFICATE" not in text:
        raise ConfigError(f"{_place(store)} has no certificate")
    return text


def _pem(store: StoreSettings) -> bytes:
    """Return the text of a store in PEM."""
    if (store.location is None) == (store.pem is None):
        raise ConfigError(
            f"{store.prefix}.location: with {store.prefix}.type=PEM, either this file or the texts "
            "in PEM must be set"
        )
    if store.password is not None:
        raise ConfigError(
            f"{store.prefix}.password: must not be set for PEM; ssl.key.password opens a key"
        )
    return store.pem.encode() if store.pem is not None else _content(store)


def _pkcs12(store: StoreSettings) -> PKCS12KeyAndCertificates:
    if store.location is None or store.pem is not None:
        raise ConfigError(
            f"{store.prefix}.location: must be set, or {store.prefix}.type must be PEM"
        )
    content = _content(store)
    if content.startswith(JKS_MAGIC):
        raise ConfigError(
            f"{store.prefix}.location: {store.location} is in the format JKS, which only Java "
            f"reads. Convert it with keytool -importkeystore -srckeystore {store.location} "
            f"-destkeystore {store.location}.p12 -deststoretype PKCS12, and set "
            f"{store.prefix}.type=PKCS12"
        )
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    password = None if store.password is None else store.password.encode()
    try:
        return load_pkcs12(content, password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            f"{store.prefix}.location: {store.location} cannot be opened with "
            f"{store.prefix}.password: {error}"
        ) from None


def _content(store: StoreSettings) -> bytes:
    assert store.location is not None
    path = Path(store.location)
    try:
        # The path may come from a client. A pipe or a device might never answer.
        if path.exists() and not path.is_file():
            raise ConfigError(f"{store.prefix}.location: {store.location} is no regular file")
        with path.open("rb") as file:
            content = file.read(MAX_STORE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{store.prefix}.location: {error}") from None
    if len(content) > MAX_STORE_BYTES:
        raise ConfigError(f"{_place(store)} has more than {MAX_STORE_BYTES} bytes")
    return content


def _place(store: StoreSettings) -> str:
    if store.location is None:
        return f"{store.prefix}.certificates"
    return f"{store.prefix}.location: {store.location}"


def _encoded(certificates: Iterable[x509.Certificate]) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)
