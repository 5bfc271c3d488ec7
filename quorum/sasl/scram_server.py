"""The server's end of SCRAM (RFC 5802): it proves that the client knows a password, and proves to
the client that the server knows its credential.

A client that is not a user gets the same answers as one with a wrong password, until the last
message (`unknown_users.py`). Each exchange has a new nonce and is used once, so no message can be
replayed.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from quorate.quorum.metadata.image import ScramCredential
from quorate.quorum.sasl.exchange import AuthenticationFailed, Exchange
from quorate.quorum.sasl.scram_mechanisms import ScramMechanism
from quorate.quorum.sasl.scram_messages import (
    ClientFinal,
    ClientFirst,
    Malformed,
    parse_client_final,
    parse_client_first,
    server_final,
    server_first,
)

TOKEN_EXTENSION = "tokenauth"
"""The extension with which a client authenticates with a delegation token. There are none."""
Credential = Callable[[str], tuple[ScramCredential, bool]]
"""Takes a user. Returns its credential and True, or that of an unknown user and False."""


class ScramExchange(Exchange):
    """An authentication by SCRAM. `nonce` is the server's part of the nonce."""

    def __init__(self, mechanism: ScramMechanism, credential: Credential, nonce: str) -> None:
        self._mechanism = mechanism
        self._credential = credential
        self._nonce = nonce
        self._first: ClientFirst | None = None
        self._server_first = ""
        self._found: tuple[ScramCredential, bool] | None = None
        self._done = False

    def respond(self, token: bytes) -> bytes:
        """Return the answer to the first or the last message of the client."""
        if self._done:
            raise AuthenticationFailed("the client sent a message after the last one")
        try:
            if self._first is None:
                return self._begin(parse_client_first(token)).encode()
            self._done = True
            return self._finish(self._first, parse_client_final(token)).encode()
        except Malformed as error:
            self._done = True
            user = None if self._first is None else self._first.user
            raise AuthenticationFailed(str(error), user) from None

    def _begin(self, first: ClientFirst) -> str:
        if first.authorization_id not in ("", first.user):
            text = (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
            raise AuthenticationFailed(text, first.user, text)
        self._first = first
        credential, known = self._credential(first.user)
        known = known and first.extensions.get(TOKEN_EXTENSION, "").lower() != "true"
        self._found = credential, known
        self._nonce = first.nonce + self._nonce
        self._server_first = server_first(self._nonce, credential.salt, credential.iterations)
        return self._server_first

    def _finish(self, first: ClientFirst, final: ClientFinal) -> str:
        assert self._found is not None
        credential, known = self._found
        signed = ",".join((first.bare, self._server_first, final.without_proof)).encode()
        mechanism = self._mechanism
        signature = mechanism.hmac(credential.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=False))
        proven = hmac.compare_digest(mechanism.hash(client_key), credential.stored_key)
        unchanged = self._credential(first.user)[0] == credential
        reasons = (
            (known, "the user is unknown"),
            (unchanged, "the credential was changed or removed meanwhile"),
            (final.nonce == self._nonce, "the nonce is not that of this exchange"),
            (final.binding == first.header.encode(), "the channel binding was changed"),
            (len(final.proof) == len(signature), "the proof has another length"),
            (proven, "the password is wrong"),
        )
        for is_so, reason in reasons:
            if not is_so:
                raise AuthenticationFailed(reason, first.user)
        self.user = first.user
        return server_final(mechanism.hmac(credential.server_key, signed))
