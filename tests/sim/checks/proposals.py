"""The ISR changes that leaders really asked for, as their brokers sent them.

The checks of the metadata log compare its records with these requests. They do not believe the
cause in a record, because the checked code has written it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from quorate.quorum.controller.state.messages import AlterPartitionRequest
from quorate.quorum.ids import Uuid
from tests.sim.world.cluster import Machine, Process

Key = tuple[Uuid, int]
Isr = frozenset[tuple[int, int]]
"""Broker ids with their epochs."""


class Proposals:
    """The proposals of all brokers since the beginning, by partition, partition epoch and leader
    epoch."""

    def __init__(self) -> None:
        self._isrs: dict[tuple[Key, int, int], set[tuple[int, Isr]]] = {}

    def watch(self, machine: Machine, process: Process) -> None:
        """Record each AlterPartition request that this process sends."""
        if process.broker is not None:
            sender: Any = process.broker.isr_sender
            sender._controller = _Spy(sender._controller, self.note)

    def note(self, request: AlterPartitionRequest) -> None:
        for change in request.changes:
            key = (change.topic_id, change.partition_id)
            asked = self._isrs.setdefault((key, change.partition_epoch, change.leader_epoch), set())
            asked.add((request.broker_id, frozenset(change.isr)))

    def asked(
        self,
        key: Key,
        partition_epoch: int,
        leader_epoch: int,
        leader: int,
        isr: Iterable[tuple[int, int]],
    ) -> bool:
        """Return True if the leader asked in these epochs for an ISR with all of `isr`, which are
        pairs of (broker id, broker epoch). The request may name more replicas, because a
        reassignment that the change completes may remove them. Epoch -1 in a request means that the
        leader does not know the epoch."""
        wanted = list(isr)
        found = self._isrs.get((key, partition_epoch, leader_epoch), set())
        return any(
            each == leader and all((i, epoch) in asked or (i, -1) in asked for i, epoch in wanted)
            for each, asked in found
        )


class _Spy:
    """A ControllerChannel that passes every call on, and each AlterPartition request also to
    `note`."""

    def __init__(self, channel: Any, note: Callable[[AlterPartitionRequest], None]) -> None:
        self._channel = channel
        self._note = note

    def send(self, request: Any, *arguments: Any) -> Any:
        if isinstance(request, AlterPartitionRequest):
            self._note(request)
        return self._channel.send(request, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)
