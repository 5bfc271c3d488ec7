"""The stores of a listener as they were read: the context, and the facts of its certificate.

A context shakes hands with itself in memory before it is used. A certificate that replaces another
one must be for the same node, unless the keys of Kafka allow the change.
"""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass

from quorate.config.key import ConfigError
from quorate.quorum.rpc.tls.context import client_context, server_context
from quorate.quorum.rpc.tls.distinguished_name import distinguished_name
from quorate.quorum.rpc.tls.settings import TlsSettings

Signature = tuple[tuple[int, int, int], ...]
"""The time of the last change in ns, the size and the inode of each file."""
STEPS = 10
"""The maximum number of steps of a handshake in memory. TLS 1.2 and 1.3 need fewer."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A context that is ready for use, and that of connections to other nodes if the listener is
    one for nodes.

    The other fields are those of its certificate: the subject, the subject alternative names, the
    URIs among them, and the end of its validity in ms since 1970 UTC."""

    context: ssl.SSLContext
    dial_context: ssl.SSLContext | None
    subject: str
    names: frozenset[str]
    uris: tuple[str, ...]
    not_after_ms: int


def load(settings: TlsSettings, *, for_nodes: bool = False) -> Loaded:
    """Read the stores and return the contexts that they make. Blocks. Raise ConfigError if they
    cannot be used."""
    from cryptography import x509

    context = server_context(settings)
    dial_context = None
    if for_nodes:  # the URI of a certificate names the node, and no host name
        dial_context = client_context(settings, verify=True, check_host=False)
    try:
        certificate = x509.load_der_x509_certificate(shown_certificate(context))
        found = (each.value for each in certificate.extensions)
        names = [each for each in found if isinstance(each, x509.SubjectAlternativeName)]
        kind = x509.UniformResourceIdentifier
        return Loaded(
            context,
            dial_context,
            distinguished_name(certificate.subject),
            frozenset(str(name) for each in names for name in each),
            tuple(uri for each in names for uri in each.get_values_for_type(kind)),
            int(certificate.not_valid_after_utc.timestamp() * 1000),
        )
    except (ValueError, ssl.SSLError) as error:
        raise ConfigError(f"ssl.keystore: its certificate cannot be used: {error}") from None


def shown_certificate(context: ssl.SSLContext) -> bytes:
    """Do a handshake with `context` in memory, and return the certificate that a client receives.

    No connection uses the context yet: meanwhile it demands no certificate of the client. Raise
    ssl.SSLError if the handshake fails."""
    client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_side.check_hostname = False
    client_side.verify_mode = ssl.CERT_NONE
    verify_mode, context.verify_mode = context.verify_mode, ssl.CERT_NONE
    shown = shake_hands(context, client_side)
    context.verify_mode = verify_mode
    if shown is None:
        raise ssl.SSLError("the handshake in memory shows no certificate")
    return shown


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes | None:
    """Do a handshake of two contexts in memory, and return the certificate that the client
    receives. Raise ssl.SSLError if the handshake fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    client_end = client.wrap_bio(to_client, to_server)
    for _ in range(STEPS):
        for end in (client_end, server_end):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return client_end.getpeercert(binary_form=True)


def check_replacement(old: Loaded, new: Loaded, settings: TlsSettings, wall_ms: int) -> None:
    """Raise ConfigError if `new` must not replace `old`, as in Kafka: it has expired, it is for
    another node and the settings do not allow that, or nodes with `new` and nodes with `old` could
    not connect to each other."""
    if new.not_after_ms <= wall_ms:
        raise ConfigError("the new certificate has expired")
    if old.subject != new.subject and not settings.allow_dn_changes:
        raise ConfigError(
            f"its subject is {new.subject!r}, and that in use has {old.subject!r}. Set "
            "ssl.allow.dn.changes=true if that is right, and restart the node"
        )
    missing = old.names - new.names
    if missing and not settings.allow_san_changes:
        raise ConfigError(
            f"it lacks the names {', '.join(sorted(missing))}. Set ssl.allow.san.changes=true if "
            "that is right, and restart the node"
        )
    if old.not_after_ms > wall_ms:
        check_mutual_trust(old, new)


def check_mutual_trust(old: Loaded, new: Loaded) -> None:
    """Raise ConfigError if a node with the stores `old` and one with `new` do not trust each other.
    Other nodes still have stores like `old` while an operator replaces those of one node."""
    if old.dial_context is None or new.dial_context is None:
        return
    try:
        shake_hands(new.context, old.dial_context)
        shake_hands(old.context, new.dial_context)
    except ssl.SSLError as error:
        raise ConfigError(
            f"nodes with the stores in use and nodes with the new ones do not trust each other "
            f"({error.reason or error}). Put both authorities into the truststores of all nodes "
            "before a certificate changes its authority"
        ) from None


def check_restart(of_file: Loaded, new: Loaded, wall_ms: int) -> None:
    """Raise ConfigError if a node with the stores `of_file`, those of its file, and one with `new`
    do not trust each other.

    A restarted node uses those of its file until it has read the dynamic configs from nodes that
    use `new`. If the certificate of the file has expired, this is not checked."""
    if of_file.not_after_ms <= wall_ms:
        return
    try:
        check_mutual_trust(of_file, new)
    except ConfigError:
        raise ConfigError(
            "nodes with the new stores and nodes with those of the node's file do not trust each "
            "other, so that the node could not connect to the others after a restart. Replace the "
            "content of the files that the node's file names, instead of the dynamic config"
        ) from None


def signature_of(settings: TlsSettings) -> Signature:
    """Return the signature of the files of the stores. It changes with each of them. Blocks. A file
    that is missing has zeros."""
    found = []
    for location in (settings.keystore.location, settings.truststore.location):
        if location is not None:
            try:
                status = os.stat(location)
            except (OSError, ValueError):  # a path from a dynamic config may hold a null byte
                found.append((0, 0, 0))
            else:
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
