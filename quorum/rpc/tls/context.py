"""The SSLContext of a listener or of a client, from its settings and stores."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from quorate.config.key import ConfigError, Value
from quorate.config.tls_keys import CIPHER_SUITES, TLS, TLS_1_2, TLS_1_3
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.rpc.tls.stores import read_keystore, read_truststore

VERSIONS = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
DEFAULT_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
SUITES_OF_1_3 = {name for name, openssl in CIPHER_SUITES.items() if not openssl}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return a new context with the certificate of this node.

    Blocks while it reads the stores. Raise ConfigError if a store cannot be used, or if the
    settings contradict each other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _choose_ciphers(context, settings)
    trusted = _trust(context, settings)
    context.verify_mode = CLIENT_AUTH[settings.client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        if not trusted:
            raise ConfigError(
                f"ssl.client.auth: value {settings.client_auth!r} needs ssl.truststore.location or "
                "ssl.truststore.certificates, which say whose certificates are valid"
            )
        # A ticket might outlive a certificate authority that was removed from the truststore.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    _load_key(context, settings)
    return context


def client_context(settings: TlsSettings, *, verify: bool, check_host: bool) -> ssl.SSLContext:
    """Return a new context for connections to a server.

    Without a truststore, the certificate authorities of the system are trusted. Without `verify`,
    any certificate is. `check_host` compares the server's certificate with its host name. Blocks
    while it reads the stores. Raise ConfigError if a store cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _choose_ciphers(context, settings)
    context.check_hostname = check_host
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    if not _trust(context, settings):
        context.load_default_certs()
    store = settings.keystore
    if store.location is not None or store.pem is not None:
        _load_key(context, settings)
    return context


def endpoint_context(truststore: Mapping[str, str]) -> ssl.SSLContext:
    """Return a new context for connections to an https endpoint. `truststore` has the texts of the
    keys ssl.truststore.*; without them, the certificate authorities of the system are trusted.

    Blocks while it reads the truststore. Raise ConfigError if it cannot be used."""
    keys = {key.name: key for key in TLS}

    def value(name: str) -> Value:
        return keys[name].parse(truststore[name]) if name in truststore else keys[name].default

    return client_context(TlsSettings.of(value), verify=True, check_host=True)


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    """Trust the certificates of the truststore. Return False if there is none."""
    trusted = read_truststore(settings.truststore)
    if trusted is None:
        return False
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ConfigError(f"ssl.truststore: its certificates cannot be read: {error}") from None
    # Java trusts each certificate of a truststore, also one that another has issued.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return True


def _choose_ciphers(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set the versions and the cipher suites. As in Java, a version without a suite is not used."""
    versions, suites = set(settings.protocols), set(settings.cipher_suites)
    if suites:
        if not suites & SUITES_OF_1_3:
            versions.discard(TLS_1_3)
        elif TLS_1_3 in versions and not suites >= SUITES_OF_1_3:
            raise ConfigError(
                "ssl.cipher.suites: must name all of "
                f"{', '.join(sorted(SUITES_OF_1_3))}, or none of them, because Python cannot "
                "choose among the suites of TLS 1.3"
            )
        if suites <= SUITES_OF_1_3:
            versions.discard(TLS_1_2)
    if not versions:
        raise ConfigError("ssl.cipher.suites: has no suite of a version in ssl.enabled.protocols")
    context.minimum_version = min(VERSIONS[each] for each in versions)
    context.maximum_version = max(VERSIONS[each] for each in versions)
    names = ":".join(CIPHER_SUITES[each] for each in settings.cipher_suites if CIPHER_SUITES[each])
    context.set_ciphers(names or DEFAULT_CIPHERS)


def _load_key(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Load the key and the chain. OpenSSL reads them from files only."""
    store = settings.keystore
    password = store.key_password or ""  # without a text OpenSSL would ask at the terminal
    with _private_file(read_keystore(store)) as path:
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{store.prefix}: the key and its certificate cannot be used "
                f"({error.reason or error}). Check that they belong together, and ssl.key.password"
            ) from None


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file with `content` that only this process can read. On Linux it is in
    memory only."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("quorate"), "w+b") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
