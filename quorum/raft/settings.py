"""What can be set in the consensus core; Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    election_timeout_ms: int = 1000  # drawn from [T, 2T)
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    max_batch_bytes: int = 8 * 1024 * 1024
    max_observers: int = 1000
    observer_session_timeout_ms: int = 300_000
    may_become_voter: bool = False
    """A controller: it flushes before it fetches also while it is an observer, for its fetch may
    be counted as a voter's by the time that it arrives."""
    auto_join: bool = False
    """A controller that is not among the voters asks to become one once it has caught up."""
    hints: bool = True
    """Closed links and refused connections start elections before timeouts do."""
    await_commit: bool = False
    """A voter's parked fetch is answered as soon as the high watermark passes it, too. For nodes
    that act on committed records while they follow (a broker in the same process); a mere standby
    learns the high watermark with the next data and saves the leader one answer per commit."""

    @property
    def check_quorum_timeout_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        return self.fetch_timeout_ms // 2


HINT_DELAY_MAX_MS = 50
"""A hint is acted on after a random delay up to this, so that two voters seldom collide."""
