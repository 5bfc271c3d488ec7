"""The times of a rehearsal that the metadata log does not contain."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.seams import Random

Range = tuple[int, int]
"""The smallest and the largest time, in ms. A seed draws from it evenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """The settings of nodes, with Kafka's defaults, and the ranges of times, in ms."""

    session_timeout_ms: int = 9_000
    """broker.session.timeout.ms."""
    heartbeat_interval_ms: int = 2_000
    """broker.heartbeat.interval.ms."""
    replica_lag_ms: int = 30_000
    """replica.lag.time.max.ms. A leader removes a dead follower from the ISR after this time, or up
    to a half later."""
    min_isr: int = 1
    """The min.insync.replicas of topics for which the log has none."""
    restart_ms: Range = (5_000, 30_000)
    """The time between the end of a broker's process and its registration, with log recovery."""
    catch_up_ms: Range = (1_000, 20_000)
    """The time that one replica needs to catch up, from the moment its broker is unfenced."""
    failover_ms: Range = (200, 3_000)
    """The time without an active controller after the active one was lost."""
    observed_ms: int = 120_000
    """The least time that a run lasts after the last fault. Troubles that remain count up to its
    end."""

    def __post_init__(self) -> None:
        """Raise BadOption if live brokers would lose their sessions between two heartbeats."""
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise BadOption(
                f"a heartbeat every {self.heartbeat_interval_ms} ms does not keep a session of "
                f"{self.session_timeout_ms} ms: the session timeout must be longer"
            )


def drawn(random: Random, times: Range) -> int:
    """Return a random time in ms from the range, with both ends."""
    low, high = times
    return random.randrange(low, high + 1)
