"""A transport whose links obey the fault rules of one node.

A rule about a peer applies to every link that this node opens to it. It also applies to a link that
the peer opens, once its first frame has identified it: the Hello of a message link, or the client
id of a follower's fetch. The handshake of a WebSocket still passes.

A listener that accepts only Kafka's protocol is one for clients. The rules about the peer "clients"
apply to its links, and no rule about a node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from quorate.quorum.faults.faults import HOLDS, Faults
from quorate.quorum.faults.link import FaultLink, Nature
from quorate.quorum.seams import (
    Accept,
    Address,
    DialTls,
    Link,
    LinkHandler,
    Listener,
    PeerUnreachable,
    Tls,
    Transport,
    Wire,
)

Links = WeakKeyDictionary[FaultLink, None]
"""The accepted links of one listener."""


class FaultTransport:
    """The transport of one node under fault rules. The thread of the event loop owns it."""

    def __init__(self, inner: Transport, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self._connecting: dict[asyncio.Task[Any], None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        faults.watch(self)

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        """Listen on the inner transport and wrap each accepted link. Raise CancelledError if the
        node has crashed."""
        self._end_ghosts()
        links: Links = WeakKeyDictionary()
        inner = await self._inner.listen(
            address,
            {
                wire: self._wrapped(
                    Nature(wire, False, tuple(accept) == (Wire.KAFKA,)), each, links
                )
                for wire, each in accept.items()
            },
            max_frame_bytes=max_frame_bytes,
            tls=tls,
        )
        return FaultListener(inner, self._faults, links)

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        """Connect and return the wrapped link.

        Raise PeerUnreachable if the peer is cut, or if it is held until `timeout_ms` has passed.
        Raise also what the inner transport raises, which gets the full `timeout_ms` after a hold.
        While the node is paused, the call returns only after the pause.
        """
        self._end_ghosts()
        task = asyncio.current_task()
        assert task is not None
        self._connecting[task] = None
        made: list[FaultLink] = []
        node_id = self._faults.peer_of(address)
        nature = Nature(wire, True, peer_id=node_id, peer_address=address)

        def wrapped(link: Link) -> LinkHandler:
            made.append(FaultLink(self._faults, link, accept, nature))
            return made[-1]

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._passable(node_id, address)
            await self._inner.connect(
                address,
                wire,
                wrapped,
                max_frame_bytes=max_frame_bytes,
                timeout_ms=timeout_ms,
                tls=tls,
            )
        except TimeoutError:
            raise PeerUnreachable(f"cannot reach {address}: its link is held") from None
        finally:
            try:
                await self._running()
            finally:
                del self._connecting[task]
        return made[0]

    def rules_changed(self) -> None:
        """Let waiting connects check the new rules."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _open(waiter)

    def crash(self) -> None:
        """Cancel the tasks of the node that are connecting."""
        for task in list(self._connecting):
            task.cancel()
            self._faults.closing(task)

    def _end_ghosts(self) -> None:
        """Raise CancelledError in a task that the node started before its crash and that runs only
        now."""
        if self._faults.crashed:
            raise asyncio.CancelledError("the node has crashed")

    async def _passable(self, node_id: int | None, address: Address) -> None:
        while True:
            if self._faults.cuts(node_id, address):
                self._faults.affected["cut"] += 1
                raise PeerUnreachable(f"cannot reach {address}: its links are cut")
            if not self._faults.holds(node_id, address):
                return
            self._faults.affected[self._way(node_id, address)] += 1
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _way(self, node_id: int | None, address: Address) -> str:
        """Return the rule that holds links to this peer."""
        return next(way for way in HOLDS if self._faults.holds(node_id, address, ways=(way,)))

    async def _running(self) -> None:
        """Wait until the node is not paused and earlier callbacks have run."""
        if self._faults.standing_still:
            through: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._faults.run(partial(_open, through))
            await through

    def _wrapped(self, nature: Nature, accept: Accept, links: Links) -> Accept:
        def wrapped(inner: Link) -> LinkHandler:
            link = FaultLink(self._faults, inner, accept, nature)
            links[link] = None
            return link

        return wrapped


class FaultListener:
    """A listener whose accepted links are under fault rules."""

    def __init__(self, inner: Listener, faults: Faults, links: Links) -> None:
        self.address = inner.address
        self._inner = inner
        self._links = links
        self._faults = faults
        faults.watch(self)

    async def close(self) -> None:
        """Abort the accepted links and stop listening."""
        self._faults.forget(self)
        for link in list(self._links):
            link.abort()
        await self._inner.close()

    def rules_changed(self) -> None:
        """Do nothing: the accepted links follow the rules themselves."""

    def crash(self) -> None:
        """Close the listening socket. `Faults.gone` waits until its port is free."""
        self._faults.closing(asyncio.get_running_loop().create_task(self._inner.close()))


def _open(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
