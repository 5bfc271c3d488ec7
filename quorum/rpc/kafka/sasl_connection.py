"""A connection whose client must authenticate before any handler sees a request of it.

`quorum/sasl/request_order.py` has the rule of every frame, and `quorum/sasl/exchange.py` the
mechanisms. The error response and the close of a failed authentication come after a delay, so that
passwords cannot be tried fast. A connection that does not authenticate in time is closed.

A client may authenticate again on the open connection. If the listener bounds the time of a
session (`connections.max.reauth.ms`), or if the credential expires, it must: a request after the
session closes the connection (KIP-368). The principal and the mechanism must stay the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from quorate.quorum.clipped import quoted, shown
from quorate.quorum.principal import USER, Principal
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import reader
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateResponse
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeResponse
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.rpc.kafka.api_versions import names_its_software
from quorate.quorum.rpc.kafka.boundary import is_node_failure
from quorate.quorum.rpc.kafka.connection import Connection
from quorate.quorum.rpc.kafka.context import NO_FRAME, RequestContext
from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from quorate.quorum.rpc.kafka.server_state import ServerState
from quorate.quorum.sasl.exchange import AuthenticationFailed, Exchange
from quorate.quorum.sasl.request_order import Action, State, action
from quorate.quorum.sasl.session import session_ms
from quorate.quorum.seams import Link, PeerIdentity, Timer

MIN_REAUTH_INTERVAL_MS = 1000
"""A client may begin to authenticate again once in this time, as in Kafka."""
AGAIN_SINCE = 1
"""The first version of SaslHandshake with which a client can authenticate again."""


class SaslConnection(Connection):
    """The connection of one client of a listener with SASL. The event loop owns it.

    Invariant: `principal` is ANONYMOUS until the first authentication is complete, and does not
    change after it."""

    __slots__ = (
        "_exchange",
        "_expires_ms",
        "_failing",
        "_gate",
        "_mechanism",
        "_reauth_began_ms",
        "_state",
        "_timer",
        "_user",
    )

    def __init__(self, gate: SaslGate, server: ServerState, link: Link) -> None:
        """Create the connection of a new link, which must authenticate in time."""
        super().__init__(server, link)
        self._gate = gate
        self._state = State.INITIAL
        self._mechanism: str | None = None
        self._exchange: Exchange | None = None
        self._user: str | None = None
        self._expires_ms: int | None = None
        self._reauth_began_ms: int | None = None
        self._failing = False
        self._timer: Timer | None = self.clock.call_later(gate.settings.timeout_ms, self._late)
        self._limit_frames(gate.settings.max_receive_bytes)

    def on_frame(self, frame: memoryview) -> None:
        """Handle one frame as `request_order.py` demands. Ignore it if the authentication has
        failed. An exception that no code expects fails the authentication, and not the node."""
        if self._failing or self._refused:
            return
        do = action(self._state, int.from_bytes(frame[:2], "big", signed=True))
        if do is Action.SERVE:
            if self._expires_ms is None or self.clock.now_ms() < self._expires_ms:
                super().on_frame(frame)
            else:
                self._gate.expired += 1
                self.close_with("its session has expired", logging.INFO)
            return
        if len(frame) > self._gate.settings.max_receive_bytes:
            self.refuse(f"{len(frame)} bytes while it authenticates")
            return
        try:
            ACTIONS[do](self, frame)
        except DecodeError as error:
            self.refuse(f"malformed request: {error}")
        except Exception as error:
            if is_node_failure(error):
                raise
            # The line must not contain a hash of the frame, which may hold a password.
            client = f"a client at {self.peer}"
            self.server.boundary.report(error, "an authentication", 0, client, NO_FRAME)
            self._fail(AuthenticationFailed(f"an unexpected {type(error).__name__}", self._user))

    def on_identified(self, identity: PeerIdentity) -> None:
        """Ignore the certificate of the client. Its principal is that of SASL."""

    def on_closed(self, error: Exception | None) -> None:
        """Abandon the authentication and all requests."""
        self._stop_timer()
        exchange, self._exchange = self._exchange, None
        if exchange is not None and exchange.refusal is not None:
            self._gate.report_failure(self.peer, self._mechanism, exchange.refusal)
        if self._user is not None and self._mechanism is not None:
            self._gate.forget(self, self._mechanism, self._user)
        super().on_closed(error)

    def revoke(self) -> None:
        """Ignore all further frames. The gate closes the connection."""
        self._failing = True

    # --- the actions for frames

    def _tell_versions(self, frame: memoryview) -> None:
        read = self._read(frame)
        if read is not None:
            context, request = read
            self.server.routes[context.api_key].handle(context, request)
            if names_its_software(context.version, request):
                self._state = State.VERSIONS_TOLD

    def _shake_hands(self, frame: memoryview) -> None:
        read = self._read(frame)
        if read is None:
            return
        context, request = read
        name, names = request.mechanism, self._gate.mechanisms.names
        if name not in names:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            response = SaslHandshakeResponse(error_code=error, mechanisms=names)
            text = "the mechanism %s is not enabled"
            failure = AuthenticationFailed(text % quoted(name), kind=text)
            self._fail(failure, lambda: context.respond(response))
            return
        context.respond(SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=names))
        if self._user is not None and name != self._mechanism:
            self._state = State.MECHANISM_CHANGED
            return
        self._mechanism = name
        self._exchange = self._gate.mechanisms.begin(name)
        self._state = State.TOKENS if context.version >= AGAIN_SINCE else State.BARE_TOKENS
        self._limit_frames(self._gate.settings.max_receive_bytes)

    def _authenticate_again(self, frame: memoryview) -> None:
        """Begin a new authentication if the session has an end. Otherwise answer with an error."""
        now_ms, began_ms = self.clock.now_ms(), self._reauth_began_ms
        _, version, _ = headers.read_fixed(frame)
        too_soon = began_ms is not None and now_ms - began_ms < MIN_REAUTH_INTERVAL_MS
        if self._expires_ms is None or too_soon or version < AGAIN_SINCE:
            super().on_frame(frame)
            return
        self._reauth_began_ms = now_ms
        self._shake_hands(frame)

    def _take_token(self, frame: memoryview) -> None:
        read = self._read(frame)
        if read is None:
            return
        context, request = read
        try:
            token = self._answer(bytes(request.auth_bytes))
        except AuthenticationFailed as failure:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=failure.message or self._general_message(),
            )
            self._fail(failure, lambda: context.respond(response))
            return
        context.respond(
            SaslAuthenticateResponse(
                error_message="",  # as in Kafka
                auth_bytes=token,
                session_lifetime_ms=self._session_rest_ms(),
            )
        )

    def _take_bare_token(self, frame: memoryview) -> None:
        try:
            token = self._answer(bytes(frame))
        except AuthenticationFailed as failure:
            self._fail(failure)
        else:
            self.link.send(token)

    def _refuse_request(self, frame: memoryview) -> None:
        super().on_frame(frame)

    def _fail_request(self, frame: memoryview) -> None:
        context = self._context(frame)
        if context is not None:
            self._enqueue(context)
            text = (
                f"Unexpected Kafka request of type {APIS[context.api_key].key.name} during SASL "
                "authentication."
            )
            self._fail(
                AuthenticationFailed(text),
                lambda: context.fail(ErrorCode.ILLEGAL_SASL_STATE, text),
            )

    def _close(self, frame: memoryview) -> None:
        reason = f"an unexpected frame: {self._state.value}"
        if self._state in (State.INITIAL, State.VERSIONS_TOLD):
            reason = "a request before its authentication (security.protocol=PLAINTEXT or SSL?)"
        failure = AuthenticationFailed(reason, self._user)
        self._gate.report_failure(self.peer, self._mechanism, failure)
        self.close_with("it does not authenticate", logging.DEBUG)

    # --- the outcome

    def _answer(self, token: bytes) -> bytes:
        """Return the answer of the exchange, and complete the authentication if it was the last
        token. Raise AuthenticationFailed."""
        assert self._exchange is not None
        answer = self._exchange.respond(token)
        user = self._exchange.user
        if user is not None:
            self._complete(user, self._exchange.expires_wall_ms)
        return answer

    def _complete(self, user: str, expires_wall_ms: int | None) -> None:
        """Give the connection its principal, and begin its session. Raise AuthenticationFailed for
        another principal than before."""
        principal = Principal(USER, user)
        if self._user not in (None, user):
            text = "Cannot change principals during re-authentication from %s"
            reason = text % shown(str(self.principal))
            raise AuthenticationFailed(reason, user, text % str(self.principal), kind=text)
        self._user, self.principal = user, principal
        self._exchange = None
        self._state = State.DONE
        self._stop_timer()
        self._limit_frames(None)
        assert self._mechanism is not None
        self._gate.admit(self, self._mechanism, user)
        rest_ms = None if expires_wall_ms is None else expires_wall_ms - self.clock.wall_ms()
        max_reauth_ms = self._gate.settings.max_reauth_ms.get(self._mechanism, 0)
        lifetime_ms = session_ms(max_reauth_ms, rest_ms)
        self._expires_ms = None if lifetime_ms is None else self.clock.now_ms() + lifetime_ms
        if not self._spoke:
            self._speaks()

    def _session_rest_ms(self) -> int:
        """Return the rest of the session in ms. 0 stands for one without an end, and for an
        authentication that is not complete."""
        if self._state is not State.DONE or self._expires_ms is None:
            return 0
        return self._expires_ms - self.clock.now_ms()

    def _fail(
        self, failure: AuthenticationFailed, respond: Callable[[], None] | None = None
    ) -> None:
        """Report the failure. After the delay, call `respond` and close the connection."""
        self._failing = True
        self._exchange = None
        self._stop_timer()
        self._gate.report_failure(self.peer, self._mechanism, failure)
        delay_ms = self._gate.settings.failure_delay_ms

        def end() -> None:
            if not self.closed:
                if respond is not None:
                    respond()
                self.close_with("it failed to authenticate", logging.DEBUG)

        self.pause_reading_for(delay_ms)
        self.clock.call_later(delay_ms, end)

    def _general_message(self) -> str:
        """Return Kafka's text that is the same for all causes."""
        again = "authentication" if self._user is None else "re-authentication"
        return (
            f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )

    def _late(self) -> None:
        self._timer = None
        seconds = self._gate.settings.timeout_ms / 1000
        exchange, self._exchange = self._exchange, None
        refusal = None if exchange is None else exchange.refusal
        failure = refusal or AuthenticationFailed("it took too long")
        self._gate.report_failure(self.peer, self._mechanism, failure)
        self.close_with(f"it did not authenticate within {seconds:g} s", logging.DEBUG)

    # --- reading

    def _read(self, frame: memoryview) -> tuple[RequestContext, Any] | None:
        """Return a request of SASL or ApiVersions and its context, which has its place in the
        queue. Return None for a version that is not served, which is answered or closed.

        The frame is small, so it is decoded in one step. Raise DecodeError."""
        context = self._context(frame)
        if context is None:
            return None
        self._enqueue(context)
        api = self.server.routes[context.api_key].api
        flexible = context.version >= api.flexible_since
        context.client_id, start = headers.read_client_id(frame, 2 if flexible else 1)
        request, _ = reader(api.request, context.version, flexible)(frame[start:], 0)
        return context, request

    def _limit_frames(self, max_bytes: int | None) -> None:
        """Bound the frames of the link before they are complete, if the link can. None means the
        bound of the listener."""
        limit = getattr(self.link, "limit_frames", None)
        if limit is not None:
            limit(max_bytes)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


ACTIONS: dict[Action, Callable[[SaslConnection, memoryview], None]] = {
    Action.TELL_VERSIONS: SaslConnection._tell_versions,
    Action.SHAKE_HANDS: SaslConnection._shake_hands,
    Action.AUTHENTICATE_AGAIN: SaslConnection._authenticate_again,
    Action.TAKE_TOKEN: SaslConnection._take_token,
    Action.TAKE_BARE_TOKEN: SaslConnection._take_bare_token,
    Action.REFUSE: SaslConnection._refuse_request,
    Action.FAIL: SaslConnection._fail_request,
    Action.CLOSE: SaslConnection._close,
}
"""The method of each action but SERVE."""
