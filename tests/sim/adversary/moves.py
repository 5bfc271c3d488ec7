"""The loop of an adversary: one numbered move after the other, at random moments."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Sequence
from random import Random
from typing import ClassVar

from tests.sim.adversary.values import Aims, Draw
from tests.sim.world.cluster import SimCluster
from tests.sim.world.transport import SimTransport

PAUSE_S = 0.08
"""The mean time between two moves."""


class Mover(abc.ABC):
    """An adversary that makes numbered moves. Move 17 of letter `c` is named c17. Each move draws
    from a stream of its own, so that it does not change if other moves are left out."""

    letter: ClassVar[str]

    def __init__(self, cluster: SimCluster, name: str, only: Sequence[str] | None) -> None:
        """`only` names the moves to carry out. A letter alone means all moves of that adversary. If
        `only` is None, all moves are carried out."""
        self.cluster = cluster
        self.aims = Aims(cluster)
        self.host = cluster.network.boot(name)
        self.transport = SimTransport(cluster.network, self.host)
        self.done: list[str] = []
        self._name = name
        self._only = None if only is None else set(only)
        self._moving = ""
        self._task: asyncio.Task[None] | None = None

    @abc.abstractmethod
    async def move(self, draw: Draw) -> None: ...

    def start(self) -> None:
        self._task = self.host.spawn(self._run())
        self._task.add_done_callback(self.cluster.task_done)

    def stop(self) -> None:
        """Stop for good. Requests in flight stay in flight."""
        if self._task is not None:
            self._task.cancel()

    def note(self, what: str) -> None:
        self.cluster.note(f"{self._name} {self._moving}: {what}")

    async def _run(self) -> None:
        pauses = self.cluster.random(f"{self._name} pauses")
        number = 0
        while True:
            await asyncio.sleep(pauses.expovariate(1 / PAUSE_S))
            number += 1
            self._moving = f"{self.letter}{number}"
            if self._only is None or not self._only.isdisjoint((self._moving, self.letter)):
                self.done.append(self._moving)
                await self.move(Draw(Random(f"{self.cluster.seed}/{self._moving}"), 0.0))
