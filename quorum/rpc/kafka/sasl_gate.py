"""The SASL of one listener: its mechanisms, its bounds, and its authenticated connections.

If a SCRAM credential is removed, the connections that were authenticated with it are closed. Kafka
lets them live until they authenticate again (docs/differences.md).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from quorate.quorum.clipped import quoted
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.image import ScramKey
from quorate.quorum.sasl.exchange import AuthenticationFailed
from quorate.quorum.sasl.mechanisms import Mechanisms
from quorate.quorum.sasl.scram_mechanisms import BY_NAME
from quorate.quorum.seams import Address, Clock

CLOSED_AT_ONCE = 100
"""The number of connections that one step closes."""

logger = logging.getLogger("quorate.kafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The bounds of authentications. Times are in ms.

    `timeout_ms` is the time from the accept of a connection until its authentication.
    `max_reauth_ms` is the time after which a client must authenticate again, by mechanism. 0, or
    no entry, means never."""

    max_receive_bytes: int = 512 << 10
    failure_delay_ms: int = 100
    timeout_ms: int = 10_000
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)


class AuthenticatedConnection(Protocol):
    """A connection, as the gate uses it."""

    def revoke(self) -> None:
        """Handle no more requests."""

    def close_with(self, reason: str, level: int) -> None:
        """Close the connection and log the reason."""


class SaslGate:
    """The SASL of one listener, which its connections share. The event loop owns it."""

    def __init__(
        self, mechanisms: Mechanisms, settings: SaslSettings, clock: Clock, listener: str = ""
    ) -> None:
        """Create a gate that no client has passed."""
        self.listener = listener
        self.mechanisms = mechanisms
        self.settings = settings
        self._clock = clock
        self._lines = LogLimit(clock)
        self._by_credential: dict[ScramKey, dict[AuthenticatedConnection, None]] = {}
        self._revoked: list[AuthenticatedConnection] = []
        self.successful = 0
        self.failed = 0
        self.expired = 0
        """The number of connections that were closed because a request came after the session."""

    def admit(self, connection: AuthenticatedConnection, mechanism: str, user: str) -> None:
        """Count an authentication. Remember which credential the connection used."""
        self.successful += 1
        of = BY_NAME.get(mechanism)
        if of is not None:
            self._by_credential.setdefault((user, of.number), {})[connection] = None

    def forget(self, connection: AuthenticatedConnection, mechanism: str, user: str) -> None:
        """Forget a connection that was admitted and is closed."""
        of = BY_NAME.get(mechanism)
        key = (user, 0 if of is None else of.number)
        connections = self._by_credential.get(key, {})
        connections.pop(connection, None)
        if not connections:
            self._by_credential.pop(key, None)

    def credentials_removed(self, keys: Iterable[ScramKey]) -> None:
        """Close the connections that were authenticated with these credentials.

        They handle no more requests from now on. They are closed in steps of CLOSED_AT_ONCE."""
        for key in keys:
            for connection in self._by_credential.get(key, ()):
                connection.revoke()
                self._revoked.append(connection)
        if self._revoked:
            self._clock.call_soon(self._close_revoked)

    def _close_revoked(self) -> None:
        for connection in self._revoked[:CLOSED_AT_ONCE]:
            connection.close_with("its credential was removed", logging.INFO)
        del self._revoked[:CLOSED_AT_ONCE]
        if self._revoked:
            self._clock.call_soon(self._close_revoked)

    def report_failure(
        self, peer: Address, mechanism: str | None, failure: AuthenticationFailed
    ) -> None:
        """Count a failed authentication and log it. Failures of one address and kind are logged
        once in each interval."""
        self.failed += 1
        left_out = self._lines.passes((peer.host, mechanism, failure.kind))
        if left_out is not None:
            logger.warning(
                "a client at %s failed to authenticate as %s by %s: %s%s",
                peer,
                "an unnamed user" if failure.user is None else quoted(failure.user),
                mechanism or "no mechanism",
                failure.reason,
                left_out,
            )
