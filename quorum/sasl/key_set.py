"""The keys of a token provider: a JSON Web Key Set (RFC 7517), and the choice of a key.

Only public keys of asymmetric algorithms are used. A symmetric key would have to be known to every
broker, and a token that is signed with a public key as if it were symmetric would be accepted. A
key that cannot be used is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from quorate.quorum.clipped import quoted
from quorate.quorum.sasl.bearer_token import UnknownKey

MAX_JWKS_BYTES = 256 << 10
"""The maximum size of a key set."""
MAX_KEYS = 100
"""The maximum number of keys in a key set. Further ones are left out."""
MIN_RSA_BITS = 2048
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
RSA_ALGORITHMS = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
"""The algorithm of each curve."""
ALGORITHMS = RSA_ALGORITHMS | frozenset(CURVES.values())
"""The algorithms by which a token may be signed."""
KEY_TYPES: Mapping[str, tuple[type[Any], tuple[str, ...]]] = {
    "RSA": (RSAAlgorithm, ("n", "e")),
    "EC": (ECAlgorithm, ("crv", "x", "y")),
    "OKP": (OKPAlgorithm, ("crv", "x")),
}
"""The class of PyJWT that reads keys of each type, and the members of a public key."""


class KeySetRefused(Exception):
    """The text is no key set, or has no key that can verify a token."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key, its id, and the algorithms that may use it."""

    id: str | None
    key: PublicKey
    algorithms: frozenset[str]


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys that can verify tokens, at most MAX_KEYS."""

    keys: tuple[VerificationKey, ...] = ()

    def find(self, key_id: str | None, algorithm: str) -> VerificationKey:
        """Return the key with this id, for this algorithm. A token without the id of a key is
        verified by the only key for its algorithm.

        Raise UnknownKey if there is none, or more than one."""
        found = [
            each for each in self.keys if algorithm in each.algorithms and key_id in (None, each.id)
        ]
        if len(found) == 1:
            return found[0]
        if key_id is None:
            raise UnknownKey(f"the token names no key, and {len(found)} keys are for {algorithm}")
        raise UnknownKey(
            f"{len(found)} keys have the id {quoted(key_id)} and are for {algorithm}",
            kind="the key of the token is unknown",
        )


def parse_key_set(text: bytes) -> KeySet:
    """Return the keys of a JSON Web Key Set that can verify tokens.

    This takes about 0.1 ms for each key. Raise KeySetRefused if the text is too large, is no key
    set, or has no such key."""
    if len(text) > MAX_JWKS_BYTES:
        raise KeySetRefused(f"it has more than {MAX_JWKS_BYTES} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise KeySetRefused("it is no JSON") from None
    entries = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise KeySetRefused('it is no JSON object with a list "keys"')
    keys = [_key(each) for each in entries[:MAX_KEYS] if isinstance(each, dict)]
    usable = tuple(each for each in keys if each is not None)
    if not usable:
        raise KeySetRefused(f"none of its {len(entries)} keys can verify a signature")
    return KeySet(usable)


def _key(entry: Mapping[str, Any]) -> VerificationKey | None:
    """Return the public key of an entry, or None if it is for another use, weak or malformed."""
    reader, members = KEY_TYPES.get(str(entry.get("kty")), (None, ()))
    operations = entry.get("key_ops", ["verify"])
    verifies = isinstance(operations, list) and "verify" in operations
    if reader is None or entry.get("use", "sig") != "sig" or not verifies:
        return None
    public = {name: entry[name] for name in ("kty", *members) if name in entry}
    try:
        key = reader.from_jwk(public)
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):
        return None
    if isinstance(key, rsa.RSAPublicKey):
        algorithms = RSA_ALGORITHMS if key.key_size >= MIN_RSA_BITS else frozenset()
    else:
        algorithms = frozenset((CURVES.get(str(entry.get("crv")), ""),)) & ALGORITHMS
    if "alg" in entry:
        algorithms &= {str(entry["alg"])}
    key_id = entry.get("kid")
    if not algorithms or not isinstance(key_id, str | None):
        return None
    return VerificationKey(key_id, key, algorithms)
