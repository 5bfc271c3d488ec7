"""The events of a run by time, and the states of nodes and partitions over time.

The module is pure. It has two sources: the actions of the run (fault, kill, restart), and the
records of the metadata log (fencing, leaders, the active controller, causes). Times are ms since
the start of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quorate.quorum.metadata.records import NO_LEADER

# The states of nodes in the metadata log: a broker is serving (unfenced) or fenced, a controller is
# standby or active.
SERVING, FENCED, STANDBY, ACTIVE = "serving", "fenced", "standby", "active"
# The states of nodes that a step causes: killed or stopped, without some messages such as
# heartbeats, cut off from others, paused (SIGSTOP), slow, on a bad disk, and with a wrong clock.
DEAD, MUTED, CUT, PAUSED = "dead", "muted", "cut", "paused"
SLOW, BAD_DISK, SKEWED = "slow", "bad-disk", "skewed"


@dataclass(frozen=True, slots=True)
class Event:
    """An event at one moment, of one node or of the whole cluster."""

    ms: int
    what: str
    """A phrase for people. If `node` is set, the node is its subject."""
    node: int | None = None
    cause: str = ""
    """The recorded cause, empty if there is none."""
    kind: str = "step"
    """The kind: step, fault, fenced, unfenced, leaders, controller or isr."""


@dataclass(frozen=True, slots=True)
class StateInterval:
    """An interval in which a node or a partition was in one state.

    `subject` is the id of the node or partition, and `what` names the state. `leader` and `epoch`
    are set only for partitions."""

    subject: int
    what: str
    start_ms: int
    end_ms: int
    cause: str = ""
    leader: int = NO_LEADER
    epoch: int = -1


@dataclass(slots=True)
class CurrentState:
    """A state that has not ended yet."""

    what: str
    start_ms: int
    cause: str
    leader: int = NO_LEADER
    epoch: int = -1


@dataclass(slots=True)
class StateTracker:
    """The states of many nodes or partitions (subjects) over time.

    A subject has at most one state at a time: a new state ends the one before."""

    intervals: list[StateInterval] = field(default_factory=list)
    """The states that have ended."""
    _open: dict[int, CurrentState] = field(default_factory=dict)

    def now(self, subject: int) -> CurrentState | None:
        """Return the present state of the subject, or None."""
        return self._open.get(subject)

    def open(self) -> dict[int, str]:
        """Return the names of all present states by subject."""
        return {subject: each.what for subject, each in self._open.items()}

    def current_states(self) -> dict[int, CurrentState]:
        """Return all present states by subject."""
        return dict(self._open)

    def begin(
        self,
        subject: int,
        what: str,
        ms: int,
        cause: str = "",
        *,
        leader: int = NO_LEADER,
        epoch: int = -1,
    ) -> None:
        """End the subject's present state and begin a new one."""
        self.end(subject, ms)
        self._open[subject] = CurrentState(what, ms, cause, leader, epoch)

    def end(self, subject: int, ms: int) -> None:
        """End the subject's present state, if there is one."""
        was = self._open.pop(subject, None)
        if was is not None:
            self.intervals.append(
                StateInterval(
                    subject,
                    was.what,
                    was.start_ms,
                    max(ms, was.start_ms),
                    was.cause,
                    was.leader,
                    was.epoch,
                )
            )

    def close(self, ms: int) -> tuple[StateInterval, ...]:
        """End all states, and return all intervals, sorted by subject and start."""
        for subject in list(self._open):
            self.end(subject, ms)
        return tuple(
            sorted(self.intervals, key=lambda interval: (interval.subject, interval.start_ms))
        )


def partitions_text(partitions: Sequence[int], shown: int = 8) -> str:
    """Return partitions as text, of which the first few are listed."""
    listed = ", ".join(map(str, sorted(partitions)[:shown]))
    rest = len(partitions) - shown
    word = "partition" if len(partitions) == 1 else "partitions"
    return f"{word} {listed}" + (f" and {rest} more" if rest > 0 else "")
