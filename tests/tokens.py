"""A provider of bearer tokens: its keys, its key set, and the tokens that it signs."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ISSUER, AUDIENCE = "https://issuer.example.com", "kafka"
READERS: dict[str, Any] = {
    "RS": RSAAlgorithm,
    "PS": RSAAlgorithm,
    "ES": ECAlgorithm,
    "Ed": OKPAlgorithm,
}


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """Return a key for `algorithm`, another one for each `number`."""
    if algorithm[:2] in ("RS", "PS"):
        return rsa.generate_private_key(65537, 2048)
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
    return ec.generate_private_key(curves[algorithm])


def jwk(key_id: str | None, algorithm: str, key: Any) -> dict[str, Any]:
    """Return the public part of a key as an entry of a key set."""
    entry = json.loads(READERS[algorithm[:2]].to_jwk(key.public_key()))
    return {**entry, "use": "sig"} | ({} if key_id is None else {"kid": key_id})


@dataclass
class TokenProvider:
    """A provider whose keys are `keys`: an algorithm and a number by the id of the key."""

    keys: dict[str, tuple[str, int]] = field(default_factory=lambda: {"k1": ("ES256", 0)})

    def jwks(self) -> bytes:
        """Return the key set."""
        entries = [jwk(key_id, *self._of(key_id)) for key_id in self.keys]
        return json.dumps({"keys": entries}).encode()

    def _of(self, key_id: str) -> tuple[str, Any]:
        algorithm, number = self.keys[key_id]
        return algorithm, private_key(algorithm, number)

    def token(
        self,
        wall_ms: int,
        user: str | None = "alice",
        *,
        seconds: float = 60,
        key_id: str = "k1",
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a token of `user` that is valid for some `seconds`. If they are negative, it has
        expired. A claim of None is left out."""
        algorithm, key = self._of(key_id)
        now_s = wall_ms / 1000
        times = {"iat": now_s + min(0, seconds - 60), "exp": now_s + seconds}
        every = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, **times, **claims}
        present = {name: value for name, value in every.items() if value is not None}
        return signed(present, key, algorithm, {"kid": key_id, **(header or {})})


def signed(claims: Any, key: Any, algorithm: str, header: dict[str, Any]) -> str:
    """Return a token with these claims, which may be any JSON. A member of the header that is None
    is left out."""
    present = {name: value for name, value in header.items() if value is not None}
    return jwt.PyJWS().encode(json.dumps(claims).encode(), key, algorithm, present)


def part(value: Any) -> str:
    """Return a part of a token that holds a JSON value."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
