"""The signature of a bearer token: a JSON Web Signature in compact form (RFC 7515).

The header of a token is not trusted. It only chooses among the keys that the broker has and the
algorithms that these are for. A key, a certificate or an address in the header is never used.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

import jwt
from jwt.exceptions import PyJWTError

from quorate.quorum.clipped import quoted
from quorate.quorum.sasl.bearer_token import TokenRefused
from quorate.quorum.sasl.key_set import ALGORITHMS, KeySet

PARTS = 3
MAX_HEADER_CHARS = 8192
UNDERSTOOD = ("crit", "b64", "zip", "enc")
"""Members of a header that would change the meaning of the token. None of them is supported."""
MALFORMED = "the token is no signed JSON Web Token"


def verified_claims(token: str, keys: KeySet) -> Mapping[str, Any]:
    """Return the claims of a token whose signature is valid. Verification takes up to 1 ms.

    Raise TokenRefused, and UnknownKey if a newer key set could have its key."""
    header = _header(token)
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        shown = quoted(algorithm) if isinstance(algorithm, str) else "no text"
        raise TokenRefused(
            f"the algorithm {shown} of the token is not accepted",
            kind="the algorithm of the token is not accepted",
        )
    if any(each in header for each in UNDERSTOOD) or not isinstance(key_id, str | None):
        raise TokenRefused("the header of the token is not supported")
    key = keys.find(key_id, algorithm)
    try:
        payload = jwt.PyJWS().decode_complete(token, key.key, algorithms=[algorithm])["payload"]
    except (PyJWTError, ValueError, TypeError):
        raise TokenRefused("the signature of the token is not valid") from None
    claims = _object(payload)
    if claims is None:
        raise TokenRefused("the claims of the token are no JSON object")
    return claims


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a token, which nothing has verified."""
    parts = token.split(".")
    if len(parts) != PARTS or not all(parts) or len(parts[0]) > MAX_HEADER_CHARS:
        raise TokenRefused(MALFORMED)
    try:
        header = _object(urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
    except ValueError:
        header = None
    if header is None:
        raise TokenRefused(MALFORMED)
    return header


def _object(text: bytes) -> Mapping[str, Any] | None:
    """Return the members of a JSON object, or None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
