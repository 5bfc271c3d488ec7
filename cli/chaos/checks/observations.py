"""The observations of a run about metadata, controllers, groups, the admin client and moves. Pure.

Times are in ms since the start of the run, unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.cli.chaos.checks.availability import Availability


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The end of the session of a broker whose heartbeats do not reach the controllers."""

    node: int
    timeout_ms: int
    """The value of broker.session.timeout.ms."""
    last_heartbeat_ms: int
    """The time at which the last heartbeat left the broker."""
    fenced_ms: int
    cause: str
    """The cause in the record that fenced the broker."""

    @property
    def after_ms(self) -> int:
        """Return the time from the last heartbeat to the fencing, in ms."""
        return self.fenced_ms - self.last_heartbeat_ms


CHANGE, READ = "change", "read"
"""The requests that a run sends to single controllers: a change and a read of metadata."""
ANSWERED, NO_ANSWER = "NONE", "NETWORK_EXCEPTION"
"""The names in place of an error if a request succeeded, and if no answer came."""
NOT_CONTROLLER = "NOT_CONTROLLER"
"""The error that refuses a request clearly: the controller says that it is not the active one.
REQUEST_TIMED_OUT is no refusal, because the change may still be committed."""


class MetadataAnswer(NamedTuple):
    """The answer of one node to a CHANGE or a READ, and the times of the request and the answer."""

    node: int
    what: str
    sent_ms: int
    ms: int
    error: str
    """The name of an error, ANSWERED or NO_ANSWER."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataWrites:
    """The changes of metadata that a client of the run requested all the time."""

    availability: Availability = field(default_factory=Availability)
    """The committed changes, as those of partition 0, and the times at which a change waited."""
    asked: Sequence[MetadataAnswer] = ()
    """The answers of the controllers that steps have asked directly."""
    asks_controllers: bool = True
    """False if the run cannot ask controllers directly, as on the nodes of a nodes.toml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resignation:
    """The answers of an isolated controller to a client that asked it for the active controller."""

    node: int
    isolated_ms: int
    resigned_ms: int | None
    """The time of its first answer that it is not the active one. None: it never said so."""
    answers: int = 0
    """The number of its answers."""


class Rebalance(NamedTuple):
    """The kill of a group member, and the time at which every partition had a member again, or
    None."""

    killed_ms: int
    complete_ms: int | None

    def lasted_ms(self, end_ms: int) -> int:
        """Return the length. A rebalance that has not ended lasts until the end of the run."""
        return (end_ms if self.complete_ms is None else self.complete_ms) - self.killed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReads:
    """The observations of the consumer group of a run."""

    records: int
    """The offsets below the ends that members have read."""
    missing: Mapping[int, int] = field(default_factory=dict)
    """The first offset below its end that no member has read, by partition."""
    went_back: Sequence[str] = ()
    """The committed offsets that were lower than one before, as texts."""
    commits: int = 0
    joins: int = 0
    kills_members: bool = False
    """True if the workload says that members are killed."""
    rebalances: Sequence[Rebalance] = ()


class AdminWait(NamedTuple):
    """One request of the admin client, and the time of its success, or None."""

    operation: str
    sent_ms: int
    done_ms: int | None

    def waited_ms(self, end_ms: int) -> int:
        """Return the wait. A request without a success waited until the end of the run."""
        return (end_ms if self.done_ms is None else self.done_ms) - self.sent_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminWaits:
    """The requests of the admin client of a run, which sends those of `operations` in turn."""

    operations: Sequence[str]
    requests: Sequence[AdminWait] = ()

    def by_operation(self) -> dict[str, list[AdminWait]]:
        """Return the requests by their operation."""
        found: dict[str, list[AdminWait]] = {}
        for each in self.requests:
            found.setdefault(each.operation, []).append(each)
        return found


@dataclass(slots=True, kw_only=True)
class Reassignment:
    """The move of the topic's replicas: the new replicas by partition, and its begin and end."""

    targets: Mapping[int, Sequence[int]]
    start_ms: int
    end_ms: int | None = None
    """The time at which every partition had exactly its new replicas. None: that was not seen."""
