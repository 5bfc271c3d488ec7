"""From the certificate of a peer to its identity."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from quorate.config.principal_mapping import MappingRule, user_name
from quorate.quorum.clipped import quoted
from quorate.quorum.principal import USER, Principal
from quorate.quorum.rpc.tls.distinguished_name import distinguished_name
from quorate.quorum.seams import ANONYMOUS_PEER, PeerIdentity

MAX_NAME_CHARS = 2048
"""The maximum length of a subject. The patterns of the mapping rules see no longer text."""
MAX_URIS = 16


class IdentityRefused(Exception):
    """The certificate is valid, but gives no principal."""


def identity_of(session: ssl.SSLObject, rules: Sequence[MappingRule]) -> PeerIdentity:
    """Return the identity in the certificate of the peer of a complete handshake. A peer without a
    certificate is ANONYMOUS_PEER.

    OpenSSL has verified the certificate. Raise IdentityRefused if it cannot be read, if its subject
    or the number of its URIs is too large, or if no mapping rule matches its subject."""
    encoded = session.getpeercert(binary_form=True)
    if encoded is None:
        return ANONYMOUS_PEER
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        certificate = x509.load_der_x509_certificate(encoded)
        name = distinguished_name(certificate.subject)
        names = [
            each.value
            for each in certificate.extensions
            if isinstance(each.value, x509.SubjectAlternativeName)
        ]
    except (
        ValueError,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
        UnsupportedAlgorithm,
    ) as error:
        raise IdentityRefused(f"the certificate cannot be read: {error}") from None
    kind = x509.UniformResourceIdentifier
    uris = [uri for each in names for uri in each.get_values_for_type(kind)]
    if len(name) > MAX_NAME_CHARS or len(uris) > MAX_URIS:
        raise IdentityRefused("the certificate's subject is too long, or it has too many URIs")
    user = user_name(rules, name)
    if not user:
        raise IdentityRefused(
            f"no rule of ssl.principal.mapping.rules gives a name for {quoted(name)}"
        )
    return PeerIdentity(Principal(USER, user), tuple(uris), verified=True)
