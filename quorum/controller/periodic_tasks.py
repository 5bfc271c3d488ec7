"""The schedule of the active controller's periodic tasks."""

from __future__ import annotations

import enum

from quorate.quorum.controller.state.sessions import NEVER_MS
from quorate.quorum.controller.state.settings import ControllerSettings


class Task(enum.Enum):
    """The periodic tasks. `controller.py` carries them out."""

    BALANCE_LEADERS = "balance leaders"
    """Returns leaderships to the preferred replicas."""
    ELECT_UNCLEANLY = "elect uncleanly"
    """Makes the unclean elections that the configs allow, for partitions without a leader."""
    WRITE_NO_OP = "write no-op"
    """Appends a no-op record."""


def intervals_ms(settings: ControllerSettings) -> dict[Task, int]:
    """Return the interval of each task in milliseconds. A task with an interval of 0 or less never
    runs."""
    return {
        Task.BALANCE_LEADERS: (
            settings.imbalance_check_interval_ms if settings.auto_leader_rebalance else 0
        ),
        Task.ELECT_UNCLEANLY: settings.unclean_election_interval_ms,
        Task.WRITE_NO_OP: settings.max_idle_interval_ms,
    }


class PeriodicTasks:
    """The next due time of each periodic task, in monotonic ms.

    The schedule is empty before `start` and after `stop`: only an active controller has tasks."""

    def __init__(self, settings: ControllerSettings) -> None:
        self._interval_ms = {task: ms for task, ms in intervals_ms(settings).items() if ms > 0}
        self._due_ms: dict[Task, int] = {}

    def start(self, now_ms: int) -> None:
        """Schedule each task one interval after `now_ms`, in place of its earlier schedule."""
        self._due_ms = {task: now_ms + ms for task, ms in self._interval_ms.items()}

    def stop(self) -> None:
        """Cancel all tasks."""
        self._due_ms.clear()

    def deadline_ms(self) -> int:
        """Return the earliest due time, or NEVER_MS if no task is scheduled."""
        return min(self._due_ms.values(), default=NEVER_MS)

    def take_due(self, now_ms: int) -> Task | None:
        """Return one task that is due, or None. Its next run is one interval after `now_ms`: missed
        runs are not repeated. If several tasks are due, the order of `Task` decides."""
        for task, due_ms in self._due_ms.items():
            if due_ms <= now_ms:
                self._due_ms[task] = now_ms + self._interval_ms[task]
                return task
        return None

    def soon(self, task: Task, due_ms: int) -> None:
        """Move the next run of the task to `due_ms`, even if it was due earlier. Do nothing if the
        task is disabled or the schedule is stopped."""
        if task in self._due_ms:
            self._due_ms[task] = due_ms
