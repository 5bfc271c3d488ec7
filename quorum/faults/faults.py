"""The rules in force for one node, and the gate for every callback to the node.

A seam is the interface of a node to its clock, its random numbers, its network or its disk. Each
seam of the node is wrapped (`wrappers.py`), and one `Faults` object governs the wrappers.

Timers, frames, closed links and results of the disk pass `Faults.run`. It queues them in order
while the node is paused and discards them after a crash. The event loop changes the rules, and
each change is in force immediately.

Limits of a pause:

- The kernel and the WebSocket server continue to accept connections. A peer that connects to a
  paused node gets no response after the WebSocket upgrade, whereas a stopped process would not
  complete the upgrade.
- A coroutine of the node that runs already, such as a long HTTP request, continues until it awaits
  a timer, a frame, a link or the disk. It may still send.
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
AFFECTED = (
    "cut",
    "hold",
    "hold_to",
    "hold_from",
    "drop",
    "delay_ms",
    "bytes_per_s",
    "clock_offset_ms",
    "disk_delay_ms",
    "disk_full",
    "disk_error",
)
"""The rules whose effects are counted, by their names in `Rules`."""
HOLDS = ("hold", "hold_to", "hold_from")
"""The rules that hold links, in both directions or in one."""


class Subject(Protocol):
    """A wrapped seam that rules affect, such as a link, a listener, a clock or a disk."""

    def rules_changed(self) -> None:
        """Apply the new rules, those of `Faults.rules`. It is called after each change of them."""

    def crash(self) -> None:
        """Close the wrapped object without any callback and without a regular close. A second call
        has no effect."""


class Faults:
    """The faults of one node. The thread of the event loop owns the object.

    `rules` are in force until the next `apply`. The methods that change some rules raise RulesError
    for a value that is not valid. `crashed` is True after `crash`, and never becomes False again.

    `peer_of` returns the id of the node with the given address for node links, or None if it is
    unknown. Until it is set, a peer is identified by its address and by the id in its handshake.

    `affected` counts the frames, connects, readings of the clock and disk calls that each kind of
    rule has affected so far, by its name in AFFECTED. A fault whose count does not grow had no
    effect.

    `on_failure` gets each exception that a callback of the node raises; the default is the loop's
    exception handler.
    """

    def __init__(self, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self.rules = Rules()
        self.crashed = False
        self.affected = dict.fromkeys(AFFECTED, 0)
        self.peer_of: Callable[[Address], int | None] = lambda address: None
        self._on_failure = on_failure
        self._subjects: dict[Subject, None] = {}
        self._held: deque[Callback] = deque()
        self._closing: list[asyncio.Future[Any]] = []

    # --- the rules

    def apply(self, rules: Rules) -> None:
        """Replace all rules in force."""
        resumed = self.rules.paused and not rules.paused
        self.rules = rules
        for subject in list(self._subjects):
            subject.rules_changed()
        if resumed and self._held:
            asyncio.get_running_loop().call_soon(self._run_held)

    def cut(self, *peers: Peer) -> None:
        """Reset the links to these peers and refuse new ones, in addition to those that are cut."""
        self.apply(replace(self.rules, cut=_with(self.rules.cut, peers)))

    def heal(self, *peers: Peer) -> None:
        """End `cut` for these peers, or for all peers if none is given."""
        self.apply(replace(self.rules, cut=_without(self.rules.cut, peers)))

    def hold(self, *peers: Peer) -> None:
        """Keep the links to these peers open, but queue their frames until `release`.

        This is in addition to the links that are held."""
        self.apply(replace(self.rules, hold=_with(self.rules.hold, peers)))

    def release(self, *peers: Peer) -> None:
        """End `hold` for these peers, or for all peers if none is given."""
        self.apply(replace(self.rules, hold=_without(self.rules.hold, peers)))

    def drop(self, *messages: str) -> None:
        """Discard node messages of exactly these types, in both directions. The types of earlier
        calls pass again. Without arguments, discard none."""
        self.apply(replace(self.rules, drop=messages))

    def delay(self, delay_ms: int) -> None:
        """Delay each frame on links between nodes by `delay_ms` (`Rules` has the details). 0 ends
        the delay for later frames."""
        self.apply(replace(self.rules, delay_ms=delay_ms))

    def pause(self) -> None:
        """Pause the node until `resume`."""
        self.apply(replace(self.rules, paused=True))

    def resume(self) -> None:
        """End the pause. Queued callbacks run in order on the next iteration of the loop."""
        self.apply(replace(self.rules, paused=False))

    def cuts(self, node_id: int | None, address: Address | None, client: bool = False) -> bool:
        """Return True if links to this peer are cut. `client` is True for a client of Kafka's
        protocol."""
        return named(self.rules.cut, node_id, address, client)

    def holds(
        self,
        node_id: int | None,
        address: Address | None,
        client: bool = False,
        ways: tuple[str, ...] = HOLDS,
    ) -> bool:
        """Return True if one of the rules `ways` holds links to this peer."""
        rules = self.rules
        return any(named(getattr(rules, way), node_id, address, client) for way in ways)

    # --- the end

    def crash(self) -> None:
        """End the node as kill -9 does.

        No callback of the node runs any more. A coroutine that still runs reaches neither its disk
        nor its links, so it cannot clean up. Sockets are reset, files are closed and locks are
        released. `gone` waits until this is complete.
        """
        if self.crashed:
            return
        self.crashed = True
        self._held.clear()
        for subject in list(self._subjects):
            subject.crash()
        self._subjects.clear()

    async def gone(self) -> None:
        """After `crash`, wait until the node's ports are free, its sockets are closed and its
        attempts to connect have ended."""
        while self._closing:
            closing, self._closing = self._closing, []
            await asyncio.wait(closing)

    # --- for what is wrapped

    def watch(self, subject: Subject) -> None:
        """Register a subject. It is notified of changed rules and of a crash until `forget`."""
        self._subjects[subject] = None

    def forget(self, subject: Subject) -> None:
        """Remove a subject. Do nothing if it is not registered."""
        self._subjects.pop(subject, None)

    def closing(self, end: asyncio.Future[Any]) -> None:
        """Make `gone` wait for this future, which belongs to an object that closes
        asynchronously."""
        self._closing.append(end)

    def run(self, callback: Callback) -> None:
        """Run the callback of the node now. If the node is paused, run it in order after the pause;
        after a crash, discard it. An exception of the callback is reported (`failed`), not
        raised."""
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
        """Return True if the node is paused, or callbacks from a pause are still queued."""
        return not self.crashed and (self.rules.paused or bool(self._held))

    def failed(self, error: BaseException) -> None:
        """Report an exception that a callback of the node raised."""
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
            if self._held:  # a crash in the callback has cleared the queue
                self._held.popleft()


def _with(peers: tuple[Peer, ...], more: tuple[Peer, ...]) -> tuple[Peer, ...]:
    return (*peers, *(peer for peer in more if peer not in peers))


def _without(peers: tuple[Peer, ...], fewer: tuple[Peer, ...]) -> tuple[Peer, ...]:
    return tuple(peer for peer in peers if fewer and peer not in fewer)
