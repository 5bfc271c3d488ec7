"""The SASL of one listener: its mechanisms, its bounds, and the counts of authentications."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from quorate.quorum.clipped import quoted
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.sasl.mechanisms import Mechanisms
from quorate.quorum.seams import Address, Clock

logger = logging.getLogger("quorate.kafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The bounds of authentications. Times are in ms.

    `timeout_ms` is the time from the accept of a connection until its authentication.
    `max_reauth_ms` is the time after which a client must authenticate again. 0 means never."""

    max_receive_bytes: int = 512 << 10
    failure_delay_ms: int = 100
    timeout_ms: int = 10_000
    max_reauth_ms: int = 0


class SaslGate:
    """The SASL of one listener, which its connections share. The event loop owns it."""

    def __init__(self, mechanisms: Mechanisms, settings: SaslSettings, clock: Clock) -> None:
        """Create a gate that no client has passed."""
        self.mechanisms = mechanisms
        self.settings = settings
        self._lines = LogLimit(clock)
        self.successful = 0
        self.failed = 0
        self.expired = 0
        """The number of connections that were closed because a request came after the session."""

    def report_failure(
        self, peer: Address, mechanism: str | None, user: str | None, reason: str
    ) -> None:
        """Count a failed authentication and log it. Equal failures of one address are logged once
        in each interval."""
        self.failed += 1
        left_out = self._lines.passes((peer.host, mechanism, reason))
        if left_out is not None:
            logger.warning(
                "a client at %s failed to authenticate as %s by %s: %s%s",
                peer,
                "an unnamed user" if user is None else quoted(user),
                mechanism or "no mechanism",
                reason,
                left_out,
            )
