"""One node's faults: the rules in force, and the gate through which everything reaches the node.

A node gets wrapped seams (`wrappers.py`), all governed by one `Faults`. Timers, frames, the ends of
links and what the disk answers pass `Faults.run`: held in order while the node is paused, dropped
once it has crashed. Rules change on the event loop and hold from that call on.

What a pause cannot hold: the kernel and the WebSocket server go on accepting connections, so a
peer that connects meanwhile meets silence after the upgrade rather than before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from quorate.quorum.faults.rules import Peer, Rules, named
from quorate.quorum.seams import Address

Callback = Callable[[], None]


class Subject(Protocol):
    """What is wrapped: a link, a listener, a clock ..."""

    def rules_changed(self) -> None: ...

    def crash(self) -> None:
        """Drop it: no callback, no goodbye; idempotent."""


class Faults:
    """`peer_of` tells which node has a node-to-node address, as far as it is known; until it is
    set, peers are known by address, and by what they say in the handshake. `on_failure` is told
    what the node's callbacks raise; by default the loop's exception handler is."""

    def __init__(self, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self.rules = Rules()
        self.crashed = False
        self.peer_of: Callable[[Address], int | None] = lambda address: None
        self._on_failure = on_failure
        self._subjects: dict[Subject, None] = {}
        self._held: deque[Callback] = deque()
        self._closing: list[asyncio.Future[Any]] = []

    # --- the rules

    def apply(self, rules: Rules) -> None:
        """These, and no others, from now on."""
        resumed = self.rules.paused and not rules.paused
        self.rules = rules
        for subject in list(self._subjects):
            subject.rules_changed()
        if resumed and self._held:
            asyncio.get_running_loop().call_soon(self._run_held)

    def cut(self, *peers: Peer) -> None:
        self.apply(replace(self.rules, cut=_with(self.rules.cut, peers)))

    def heal(self, *peers: Peer) -> None:
        """Ends `cut`; of all peers, if none is named."""
        self.apply(replace(self.rules, cut=_without(self.rules.cut, peers)))

    def hold(self, *peers: Peer) -> None:
        self.apply(replace(self.rules, hold=_with(self.rules.hold, peers)))

    def release(self, *peers: Peer) -> None:
        """Ends `hold`; of all peers, if none is named."""
        self.apply(replace(self.rules, hold=_without(self.rules.hold, peers)))

    def drop(self, *messages: str) -> None:
        """Exactly these types of messages vanish; none, if none is named."""
        self.apply(replace(self.rules, drop=messages))

    def delay(self, delay_ms: int) -> None:
        self.apply(replace(self.rules, delay_ms=delay_ms))

    def pause(self) -> None:
        self.apply(replace(self.rules, paused=True))

    def resume(self) -> None:
        self.apply(replace(self.rules, paused=False))

    def cuts(self, node_id: int | None, address: Address | None) -> bool:
        return named(self.rules.cut, node_id, address)

    def holds(self, node_id: int | None, address: Address | None) -> bool:
        return named(self.rules.hold, node_id, address)

    # --- the end

    def crash(self) -> None:
        """kill -9: from now on nothing reaches the node and the node reaches nothing; sockets are
        reset, files closed, locks free. Nothing of the node's own code runs."""
        if self.crashed:
            return
        self.crashed = True
        self._held.clear()
        for subject in list(self._subjects):
            subject.crash()
        self._subjects.clear()

    async def gone(self) -> None:
        """After `crash`: until its ports are free, its sockets closed and its tasks ended."""
        while self._closing:
            closing, self._closing = self._closing, []
            await asyncio.wait(closing)

    # --- for what is wrapped

    def watch(self, subject: Subject) -> None:
        self._subjects[subject] = None

    def forget(self, subject: Subject) -> None:
        self._subjects.pop(subject, None)

    def closing(self, end: asyncio.Future[Any]) -> None:
        """Something of a crashed node that takes some iterations of the loop to be gone."""
        self._closing.append(end)

    def run(self, callback: Callback) -> None:
        """Now, unless the node stands still; then in order once it goes on."""
        if self.crashed:
            return
        if self.rules.paused or self._held:
            self._held.append(callback)
            return
        try:
            callback()
        except Exception as error:
            self.failed(error)

    @property
    def standing_still(self) -> bool:
        return not self.crashed and (self.rules.paused or bool(self._held))

    def failed(self, error: BaseException) -> None:
        if self._on_failure is not None:
            self._on_failure(error)
            return
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a node's callback failed", "exception": error}
        )

    def _run_held(self) -> None:
        while self._held and not self.rules.paused:
            try:
                self._held[0]()
            except Exception as error:
                self.failed(error)
            if self._held:  # unless that was its end
                self._held.popleft()


def _with(peers: tuple[Peer, ...], more: tuple[Peer, ...]) -> tuple[Peer, ...]:
    return (*peers, *(peer for peer in more if peer not in peers))


def _without(peers: tuple[Peer, ...], fewer: tuple[Peer, ...]) -> tuple[Peer, ...]:
    return tuple(peer for peer in peers if fewer and peer not in fewer)
