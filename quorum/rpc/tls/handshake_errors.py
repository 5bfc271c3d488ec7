"""The reasons of failed handshakes, as texts for the operator."""

from __future__ import annotations

import ssl

NOT_TLS = "not TLS"
TIMED_OUT = "timed out"
CLOSED = "closed by the client"
REFUSED_IDENTITY = "no principal"
UNEXPECTED = "unexpected"

EXPLANATIONS = {
    NOT_TLS: "the client does not begin a TLS handshake (security.protocol=PLAINTEXT?)",
    TIMED_OUT: "the client did not complete it in time",
    REFUSED_IDENTITY: "the client's certificate gives no principal",
    UNEXPECTED: "an error that no code expects",
    CLOSED: "the client closed the connection during it",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is refused",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has sent no certificate, and "
    "ssl.client.auth=required",
    "NO_SHARED_CIPHER": "the client offers no cipher suite of this listener",
    "UNSUPPORTED_PROTOCOL": "the client offers no TLS version of this listener",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust this node's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept this node's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept this node's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this node's certificate has expired",
}
"""The texts by the reason's name. The names of most reasons are OpenSSL's."""


def reason_of(error: ssl.SSLError) -> str:
    """Return the short name of a failure, which the metric has as a label.

    OpenSSL has a bounded number of names."""
    return error.reason or type(error).__name__


def explained(reason: str, error: Exception | None) -> str:
    """Return the text about a failed handshake for the log."""
    text = EXPLANATIONS.get(reason, f"OpenSSL says {reason}")
    detail = getattr(error, "verify_message", "") or ("" if error is None else _own_text(error))
    return f"{text}: {detail}" if detail else text


def _own_text(error: Exception) -> str:
    """Return the message of an error that is not OpenSSL's."""
    return "" if isinstance(error, ssl.SSLError) else str(error)
