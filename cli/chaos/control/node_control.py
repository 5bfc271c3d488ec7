"""The interface to the nodes of a cluster: kill, stop, pause, resume and start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol


class Effect(NamedTuple):
    """The seen effect of a fault: 1 if the node was affected, else 0, and a text."""

    affected: int
    text: str


Ending = Callable[[], Awaitable[Effect]]
"""Waits until a killed node has ended, and returns the effect."""


class NodeControl(Protocol):
    """The control of all nodes of a cluster, for one run.

    Every call is bounded in time. A call raises Refused if the node is not in the state that it
    needs, or if it cannot be reached. Faults are leases: they end if `renew` is not called, or if
    the process of the run ends."""

    def leases(self) -> AbstractAsyncContextManager[None]:
        """Keep what ends the faults of a run that is gone, for the duration of the block."""

    def renew(self) -> None:
        """Renew the leases of all faults."""

    async def kill(self, node_id: int) -> Ending:
        """Kill the node without any warning. The result waits for its end."""

    async def stop(self, node_id: int, within_ms: int) -> Effect:
        """Let the node end in its own way. The effect is 0 if it has not ended in time."""

    async def pause(self, node_id: int) -> Effect:
        """Let the node stand still."""

    async def resume(self, node_id: int) -> bool:
        """Let a paused node continue. Return True if the pause lasted until now."""

    async def start(self, node_id: int) -> bool:
        """Start a node that is down, and do not wait until it serves.

        Return True if it was down until now."""

    def runs(self, node_id: int) -> bool:
        """Return False if the node has ended, as far as known now. Do not block."""

    @property
    def paused(self) -> Sequence[int]:
        """Return the ids of the paused nodes."""

    @property
    def command_ms(self) -> int:
        """Return the time, in ms, that a command may take, or 0 if signals control the nodes."""

    def log_of(self, node_id: int) -> str:
        """Return the place of the node's log, as text."""
