"""Credentials for users that do not exist, so that a client cannot find out which users exist.

Kafka rejects an unknown user at the first message of SCRAM, and a wrong password at the last one.
Here an unknown user gets a salt, like a known one, and fails at the last message.

The salt of an unknown user is derived from the secret of the cluster and the name, so that every
broker and every attempt gives the same salt. The active controller stores the secret as the dynamic
config `quorate.sasl.scram.secret` together with the first credential, and `quorate storage format
--add-scram` stores it in the bootstrap checkpoint. A log with credentials of Apache Kafka has no
secret until the next change of a credential. Until then each broker uses a random secret of its
own.
"""

from __future__ import annotations

import hmac

from quorate.quorum.metadata.image import ScramCredential
from quorate.quorum.sasl.random_text import text_of
from quorate.quorum.sasl.scram_mechanisms import MIN_ITERATIONS, ScramMechanism
from quorate.quorum.seams import Random

SECRET_BITS = 256


class UnknownUsers:
    """Makes the credentials of unknown users from the secret of the cluster."""

    def __init__(self, random: Random) -> None:
        """Begin with a random secret of this broker."""
        self._own = random.getrandbits(SECRET_BITS).to_bytes(SECRET_BITS // 8, "big")
        self._secret = self._own

    def configure(self, secret: str | None) -> None:
        """Use `secret`, the value of the dynamic config. If it is None, use this broker's own."""
        self._secret = self._own if secret is None else secret.encode()

    def credential(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Return the credential of the unknown user `name`. No password belongs to it."""
        return unknown_user(self._secret, mechanism, name)


def unknown_user(secret: bytes, mechanism: ScramMechanism, name: str) -> ScramCredential:
    """Return a credential of the usual shape, to which no password belongs.

    Its salt has the form of the salts of Kafka's tools, and its iterations are their default."""
    label = mechanism.name.encode() + b"\0" + name.encode()
    salt = text_of(int.from_bytes(hmac.digest(secret, b"salt\0" + label, "sha256"), "big"))
    return ScramCredential(
        salt=salt.encode(),
        stored_key=mechanism.hmac(secret, b"stored key\0" + label),
        server_key=mechanism.hmac(secret, b"server key\0" + label),
        iterations=MIN_ITERATIONS,
    )
