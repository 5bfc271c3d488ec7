"""One process of a simulated node, from its start to its crash.

Everything that reaches a node from outside (timers, frames, the disk's answers) passes through its
Host. A paused host holds these events back, and a dead host drops them.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from quorate.quorum.seams import ANONYMOUS_PEER, PeerIdentity
from tests.sim.world.loop import Call, SimLoop, task_owner

T = TypeVar("T")
current_host: contextvars.ContextVar[str] = contextvars.ContextVar("current_host", default="-")
Callback = Callable[[], None]


class Host:
    def __init__(self, loop: SimLoop, name: str) -> None:
        self.loop = loop
        self.name = name
        self.paused = False
        self.dead = False
        self.identity: PeerIdentity = ANONYMOUS_PEER
        """The identity that TLS would prove to the peers of the links that are made from now on."""
        self._held: list[Callback] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._context = contextvars.copy_context()
        self._context.run(task_owner.set, self._own)
        self._context.run(current_host.set, name)

    def __repr__(self) -> str:
        return f"Host({self.name})"

    def call_soon(self, callback: Callback) -> Call:
        return self.loop.call_soon(self._gate, callback, context=self._context)

    def call_at(self, when_s: float, callback: Callback) -> Call:
        return self.loop.call_at(when_s, self._gate, callback, context=self._context)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task of this host. The tasks that it starts belong to this host, too."""
        return self._context.run(self.loop.create_task, coroutine)

    @property
    def held(self) -> int:
        """Return the number of events that wait for the end of a pause."""
        return len(self._held)

    def pause(self) -> None:
        """Stop the process as SIGSTOP does, while time continues."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        held, self._held = self._held, []
        for callback in held:
            self.call_soon(callback)

    def kill(self) -> None:
        """Cancel all tasks of the process. None of its callbacks runs again, so its timers and
        links are dead, too."""
        self.dead = True
        self._held.clear()
        for task in list(self._tasks):
            task.cancel()

    def _own(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(partial(_forget, self._tasks))

    def _gate(self, callback: Callback) -> None:
        self.loop.events += 1
        if self.dead:
            return
        if self.paused:
            self._held.append(callback)
        else:
            callback()


def _forget(tasks: dict[asyncio.Task[Any], None], task: asyncio.Task[Any]) -> None:
    tasks.pop(task, None)
