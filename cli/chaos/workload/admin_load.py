"""An admin client that requests changes at a steady pace during a run.

It creates a topic with one replica, changes a config of it, elects the preferred leaders of the
run's topic, and deletes the topic that it has created. A request that fails is sent again until it
succeeds. Thus "exists already" and "does not exist" after a request with an unknown outcome are
successes. When the client stops, it deletes the topic that it has created last."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from quorate.cli.client.errors import NotReachable, Refused

RETRY_S = 0.2
END_S = 20.0
"""The time, in s, that the last requests have before they are cancelled."""
CREATE, ALTER, ELECT, DELETE = "create topic", "alter config", "elect leaders", "delete topic"
OPERATIONS = (CREATE, ALTER, ELECT, DELETE)
"""The requests in their order, which is repeated."""


class AdminRequests(Protocol):
    """The blocking requests of the client. Each one raises Refused or NotReachable if it fails."""

    def create_topic(self, topic: str, partitions: int, replicas: int, *, min_isr: int) -> None:
        """Create a topic."""

    def change_a_config(self, topic: str, value: str) -> None:
        """Change a config of a topic."""

    def elect_preferred(self, topic: str) -> None:
        """Elect the preferred leaders of a topic's partitions."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""


class AdminRequest(NamedTuple):
    """One request: its operation, its first sending and its success in s, or None if it never
    succeeded."""

    operation: str
    sent_s: float
    done_s: float | None


@dataclass(slots=True, kw_only=True)
class AdminLoad:
    """The client of one run, owned by the event loop on which `start` is called."""

    requests: AdminRequests
    topic: str
    interval_s: float
    done: list[AdminRequest] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    """The errors by operation and text. Each of these requests was sent again."""
    _task: asyncio.Task[None] | None = None
    _sent: tuple[str, float] | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _extra: str | None = None
    """The topic that may exist and is not deleted yet, or None."""

    def start(self) -> None:
        """Start the task that requests changes."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Delete the topic of the present round, and stop. A request that still waits after END_S
        is recorded without a success.

        Raise the unexpected error that ended the task, if there is one, or Refused if the topic
        may be left behind. A second call is allowed."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping.set()
        await asyncio.wait({task}, timeout=END_S)
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        if self._sent is not None:
            self.done.append(AdminRequest(*self._sent, None))
        if isinstance(ended, Exception):
            raise ended
        if self._extra is not None:
            raise Refused(f"topic {self._extra} may be left behind: delete it")

    async def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.is_set():
                return
            self._extra = f"{self.topic}-extra-{number}"
            for operation, request, fine in self._cycle(self._extra, number):
                if self._stopping.is_set() and operation != DELETE:
                    continue
                await self._until_done(operation, request, fine)
                await self._pause()
            self._extra = None

    async def _pause(self) -> None:
        """Wait for the interval, or until the client stops."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.interval_s):
                await self._stopping.wait()

    def _cycle(self, extra: str, number: int) -> tuple[tuple[str, Callable[[], None], str], ...]:
        """Return the requests of one round: each with the error that is a success, or ""."""
        ask = self.requests
        return (
            (
                CREATE,
                lambda: ask.create_topic(extra, 1, 1, min_isr=1),
                "TOPIC_ALREADY_EXISTS",
            ),
            (ALTER, lambda: ask.change_a_config(extra, str(3_600_000 + number)), ""),
            (ELECT, lambda: ask.elect_preferred(self.topic), ""),
            (DELETE, lambda: ask.delete_topic(extra), "UNKNOWN_TOPIC_OR_PARTITION"),
        )

    async def _until_done(self, operation: str, request: Callable[[], None], fine: str) -> None:
        """Send a request until it succeeds."""
        sent_s = time.monotonic()
        self._sent = operation, sent_s
        again = False
        while True:
            try:
                await asyncio.to_thread(request)
                break
            except (Refused, NotReachable) as error:
                if again and fine and fine in error.message:
                    break
                self.errors[f"{operation}: {error.message}"] += 1
            again = True
            await asyncio.sleep(RETRY_S)
        self.done.append(AdminRequest(operation, sent_s, time.monotonic()))
        self._sent = None
