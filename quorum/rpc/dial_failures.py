"""The error of a connection that a node could not open, with the reason in the operator's terms if
TLS failed."""

from __future__ import annotations

import socket
import ssl

from quorate.quorum.seams import Address, PeerUnreachable, TlsFailed

UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
NOT_TLS = "the peer does not use TLS. Set the protocol SSL for its listeners of nodes"
REFUSED_OURS = "the peer refuses the certificate of this node"
EXPLANATIONS = {
    UNTRUSTED: "the certificate of the peer is refused: {detail}. An authority of this node's "
    "ssl.truststore must have issued it",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust the certificate of this node. An authority "
    "of the peer's ssl.truststore must have issued it",
    "SSLV3_ALERT_BAD_CERTIFICATE": REFUSED_OURS,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": REFUSED_OURS,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": REFUSED_OURS,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the certificate of this node has expired",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the peer accepts no TLS version of this node",
    "WRONG_VERSION_NUMBER": NOT_TLS,
    "HTTP_REQUEST": NOT_TLS,
}
"""The texts by OpenSSL's reason."""
MAX_CAUSES = 8
NO_CONNECTION = (OSError, ValueError)
"""The errors of a connection that cannot be opened. TimeoutError and gaierror are OSErrors. A host
that cannot be a name, such as `a..b` or one with a null byte, is a ValueError."""


def unreachable(address: Address, error: BaseException) -> PeerUnreachable:
    """Return the error of a connection to `address` that `error` ended: TlsFailed if an error of
    OpenSSL caused it."""
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            break
        reason = getattr(cause, "reason", None)  # aiohttp has subclasses of SSLError without one
        if isinstance(cause, ssl.SSLError) and isinstance(reason, str):
            return TlsFailed(explained(reason, cause))
        cause = cause.__cause__ or cause.__context__
    return PeerUnreachable(f"cannot reach {address}: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    """Return the reason in the operator's terms for a timeout, an unknown host and other errors of
    the system, which aiohttp wraps. For any other error return its repr."""
    inner = getattr(error, "os_error", error)
    if isinstance(inner, TimeoutError):
        return "no answer in time"
    if isinstance(inner, socket.gaierror):
        return "the host name does not resolve"
    return (isinstance(inner, OSError) and inner.strerror) or repr(error)


def explained(reason: str, error: ssl.SSLError) -> str:
    """Return the text about a handshake that failed at the connecting end. `reason` is OpenSSL's
    name of the failure."""
    text = EXPLANATIONS.get(reason, f"the TLS handshake failed: OpenSSL says {reason}")
    return text.format(detail=getattr(error, "verify_message", "") or reason)
