"""The client's end of SCRAM (RFC 5802)."""

from __future__ import annotations

import hmac
import re

from quorate.quorum.sasl.scram_mechanisms import MIN_ITERATIONS, ScramMechanism, keys_of
from quorate.quorum.sasl.scram_messages import decoded, encoded, sasl_name_of

MAX_ITERATIONS = 1_000_000
"""The most rounds that a server may demand. librdkafka has the same bound."""
HEADER = "n,,"
SERVER_FIRST = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=(\d{1,9})(?:,.*)?")
SERVER_FINAL = re.compile(r"v=([A-Za-z0-9+/=]+)(?:,.*)?")


class ServerRefused(Exception):
    """The server's message is malformed, weak, or no proof that it knows the credential."""


class ScramClient:
    """One authentication. `nonce` must be random and new for each."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={sasl_name_of(user)},r={nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """Return the first message."""
        return (HEADER + self._bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the last message. This blocks for the rounds that the server demands.

        Raise ServerRefused for a foreign nonce, and for fewer rounds than MIN_ITERATIONS or more
        than MAX_ITERATIONS."""
        text = server_first.decode("utf-8", "replace")
        match = SERVER_FIRST.fullmatch(text)
        if match is None:
            raise ServerRefused("the first message of the server is malformed")
        nonce, salt, iterations = match[1], decoded(match[2]), int(match[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ServerRefused("the nonce of the server does not continue that of the client")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ServerRefused(
                f"the server demands {iterations} iterations, allowed are {MIN_ITERATIONS} to "
                f"{MAX_ITERATIONS}"
            )
        mechanism = self._mechanism
        salted = mechanism.salted_password(self._password, salt, iterations)
        keys = keys_of(mechanism, salted)
        without_proof = f"c={encoded(HEADER.encode())},r={nonce}"
        signed = ",".join((self._bare, text, without_proof)).encode()
        client_key = mechanism.hmac(salted, b"Client Key")
        signature = mechanism.hmac(keys.stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = mechanism.hmac(keys.server_key, signed)
        return f"{without_proof},p={encoded(proof)}".encode()

    def check(self, server_final: bytes) -> None:
        """Raise ServerRefused unless the last message proves that the server knows the
        credential."""
        match = SERVER_FINAL.fullmatch(server_final.decode("utf-8", "replace"))
        if match is None or not hmac.compare_digest(decoded(match[1]), self._signature):
            raise ServerRefused("the server does not know the credential")
