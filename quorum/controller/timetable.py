"""When the active controller's periodic work is due: one table of name and interval."""

from __future__ import annotations

import enum

from quorate.quorum.controller.sessions import NEVER_MS
from quorate.quorum.controller.settings import ControllerSettings


class Task(enum.Enum):
    BALANCE_LEADERS = "balance leaders"
    ELECT_UNCLEANLY = "elect uncleanly"
    WRITE_NO_OP = "write no-op"


def intervals_ms(settings: ControllerSettings) -> dict[Task, int]:
    """0 and less: never."""
    return {
        Task.BALANCE_LEADERS: (
            settings.imbalance_check_interval_ms if settings.auto_leader_rebalance else 0
        ),
        Task.ELECT_UNCLEANLY: settings.unclean_election_interval_ms,
        Task.WRITE_NO_OP: settings.max_idle_interval_ms,
    }


class Timetable:
    def __init__(self, settings: ControllerSettings) -> None:
        self._interval_ms = {task: ms for task, ms in intervals_ms(settings).items() if ms > 0}
        self._due_ms: dict[Task, int] = {}

    def start(self, now_ms: int) -> None:
        self._due_ms = {task: now_ms + ms for task, ms in self._interval_ms.items()}

    def stop(self) -> None:
        self._due_ms.clear()

    def deadline_ms(self) -> int:
        return min(self._due_ms.values(), default=NEVER_MS)

    def take_due(self, now_ms: int) -> Task | None:
        """One task that is due; it is due again an interval from now."""
        for task, due_ms in self._due_ms.items():
            if due_ms <= now_ms:
                self._due_ms[task] = now_ms + self._interval_ms[task]
                return task
        return None

    def soon(self, task: Task, due_ms: int) -> None:
        """Nothing that never runs, and nothing while stopped."""
        if task in self._due_ms:
            self._due_ms[task] = due_ms
