"""The SCRAM mechanisms and the keys of a credential (RFC 5802, RFC 7677).

A credential holds the stored key and the server key, which are made of the salted password. The
salted password is made of the password in thousands of rounds, and is as good as the password.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import NamedTuple

MIN_ITERATIONS = 4096
"""The lowest number of rounds in Kafka, for both mechanisms. Java clients refuse fewer."""
MAX_ITERATIONS = 16_384


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """One mechanism. `number` is that of Kafka's records and messages."""

    number: int
    name: str
    hash_name: str

    def hash(self, data: bytes) -> bytes:
        """Return the hash of `data`."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """Return the keyed hash of `data`."""
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Return the salted password. This blocks for about 1 ms per 4,096 iterations. Like Kafka,
        it does not normalize the password (SASLprep)."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)


SHA_256 = ScramMechanism(1, "SCRAM-SHA-256", "sha256")
SHA_512 = ScramMechanism(2, "SCRAM-SHA-512", "sha512")
BY_NUMBER = {each.number: each for each in (SHA_256, SHA_512)}
BY_NAME = {each.name: each for each in (SHA_256, SHA_512)}


class ScramKeys(NamedTuple):
    """The two keys of a credential."""

    stored_key: bytes
    server_key: bytes


def keys_of(mechanism: ScramMechanism, salted_password: bytes) -> ScramKeys:
    """Return the keys that belong to a salted password, which must not be empty."""
    client_key = mechanism.hmac(salted_password, b"Client Key")
    return ScramKeys(mechanism.hash(client_key), mechanism.hmac(salted_password, b"Server Key"))
