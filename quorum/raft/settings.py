"""The settings of the consensus core. The defaults of the times are Kafka's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    """The settings of one node. All times are in milliseconds."""

    election_timeout_ms: int = 1000  # the timeout is random in [T, 2T)
    fetch_timeout_ms: int = 2000  # a follower without a response for this time campaigns
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500  # of a fetch at the leader if there is nothing to send
    fetch_max_bytes: int = 8 * 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    max_batch_bytes: int = 8 * 1024 * 1024
    max_observers: int = 1000  # a leader refuses the fetches of further ones
    observer_session_timeout_ms: int = 300_000  # an observer silent for longer is not reported
    may_become_voter: bool = False
    """True for a controller. It flushes before each fetch even as an observer, because the leader
    may count it as a voter when the fetch arrives."""
    auto_join: bool = False
    """True if a controller that is not a voter asks to become one after it has caught up. It never
    does so at kraft.version 0."""
    hints: bool = True
    """True if a refused connection to the leader, or links to a majority without a leader, start
    elections before timeouts do. A refused connection also ends an election that a dead voter would
    have to decide."""
    await_commit: bool = False
    """True if this node, as a voter, wants a response to its delayed fetch also when only the
    leader's high watermark has risen.

    A node that acts on committed records needs this, for example a broker in the same process. A
    standby controller learns the high watermark with the next records instead, which saves the
    leader one response for each commit. Observers, and the first fetch from a leader, always wait
    for commits, too."""

    @property
    def check_quorum_timeout_ms(self) -> int:
        """The time after which a leader resigns if no majority of the voters has fetched."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """The time between two BeginQuorumEpoch requests to a voter that has not acknowledged the
        leader."""
        return self.fetch_timeout_ms // 2


HINT_DELAY_MAX_MS = 50
"""The maximum random delay before a voter acts on a hint (docs/glossary.md). The delay makes it
unlikely that two voters start an election at the same time."""
