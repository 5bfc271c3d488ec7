"""A hostile client, which speaks Kafka's protocol to every port that serves it.

Each move draws from a stream of its own, named by the move's number. A failing seed is therefore
replayed with some of the moves left out (`--moves`). `rights.py` lists the requests that the client
does not send.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from quorate.quorum.protocol.apis import APIS, Api, ApiKey
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.seams import Address, Link, TransportError, Wire
from tests.sim.adversary import frames
from tests.sim.adversary.batches import poison
from tests.sim.adversary.moves import Mover
from tests.sim.adversary.requests import CHANGING, drawn, frame
from tests.sim.adversary.rights import is_its_right
from tests.sim.adversary.values import Draw
from tests.sim.world.cluster import CLIENT_PORT, CONTROLLER_PORT, SimCluster

MAX_LINKS = 8
CONNECT_TIMEOUT_MS = 300
MAX_FRAME_BYTES = 64 << 20
FLOOD = 60
WILDNESS = (0.0, 0.02, 0.1, 0.4)
MANY_READS = (ApiKey.METADATA, ApiKey.FETCH, ApiKey.DESCRIBE_CONFIGS, ApiKey.API_VERSIONS)


class Deaf:
    """A LinkHandler that ignores all frames."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.closed = False

    def on_frame(self, frame: memoryview) -> None: ...

    def on_closed(self, error: Exception | None) -> None:
        self.closed = True


class HostileClient(Mover):
    letter = "c"

    def __init__(self, cluster: SimCluster, only: Sequence[str] | None) -> None:
        super().__init__(cluster, "evil", only)
        self._links: dict[Deaf, Address] = {}
        self._moves: tuple[Callable[[Draw], Awaitable[None]], ...] = (
            *[self._request] * 8,
            *[self._poison] * 4,
            *[self._damaged] * 4,
            self._flood,
            self._reads_nothing,
            self._leaves,
        )

    async def move(self, draw: Draw) -> None:
        draw.wildness = draw.of(*WILDNESS)
        await draw.of(*self._moves)(draw)

    async def _request(self, draw: Draw) -> None:
        await self.send(draw, self._drawn(draw, draw.of(*APIS.values())))

    async def _poison(self, draw: Draw) -> None:
        """Send a poisonous batch to a partition of any topic, mostly to its leader."""
        topics = sorted(self.aims.image.topics.values(), key=lambda topic: topic.name)
        if not topics:
            return
        topic = draw.of(*topics)
        partition_id = draw.of(*sorted(topic.partitions))
        leader = topic.partitions[partition_id].leader
        names = {each.id: each.name for each in self.cluster.brokers}
        data = PartitionProduceData(index=partition_id, records=poison(draw, self.cluster))
        request = ProduceRequest(
            acks=draw.of(-1, -1, 1, 0),
            timeout_ms=draw.of(0, 500),
            topic_data=(
                TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=(data,)),
            ),
        )
        version = draw.of(3, 7, 8, 9, 11, 12, 13)
        self.note(f"poison for {topic.name}-{partition_id}, Produce v{version}")
        target = Address(names.get(leader, self.cluster.brokers[0].name), CLIENT_PORT)
        await self.send(draw, frame(request, version, draw), target)

    async def _damaged(self, draw: Draw) -> None:
        api = draw.of(*APIS.values())
        whole = self._drawn(draw, api)
        if whole is not None:
            damage = draw.of(*(frames.HARMLESS if api.key in CHANGING else frames.ANY))
            await self.send(draw, damage(bytearray(whole), draw))

    async def _flood(self, draw: Draw) -> None:
        """Send many requests without a pause."""
        draw.wildness = 0.02
        found = await self._link(draw)
        for _ in range(FLOOD if found is not None else 0):
            whole = self._drawn(draw, draw.of(*APIS.values()))
            if found is not None and whole is not None:
                found.link.send(whole)

    async def _reads_nothing(self, draw: Draw) -> None:
        draw.wildness = 0.0
        found = await self._link(draw)
        if found is not None:
            self.note(f"reads nothing of {self._links[found]} any more")
            found.link.pause_reading()
            for _ in range(FLOOD):
                whole = self._drawn(draw, APIS[draw.of(*MANY_READS)])
                if whole is not None:
                    found.link.send(whole)

    async def _leaves(self, draw: Draw) -> None:
        for found in list(self._links):
            if draw.random.getrandbits(1):
                (found.link.close if draw.random.getrandbits(1) else found.link.abort)()

    def _drawn(self, draw: Draw, api: Api) -> bytes | None:
        """Return a frame, or None if the cluster would have to carry out the request."""
        version = draw.random.randrange(api.min_version, api.max_version + 1)
        request = drawn(api, version, self.aims, draw)
        if is_its_right(request, self.aims):
            return None
        self.note(f"{api.name} v{version}, wild {draw.wildness}")
        return frame(request, version, draw)

    async def send(self, draw: Draw, data: bytes | None, target: Address | None = None) -> None:
        found = None if data is None else await self._link(draw, target)
        if found is not None and data is not None:
            self.note(f"{len(data)} bytes to {self._links[found]}")
            found.link.send(data)

    async def _link(self, draw: Draw, target: Address | None = None) -> Deaf | None:
        """Return a new link or an open one that was used before, None if no process answers."""
        self._links = {each: at for each, at in self._links.items() if not each.closed}
        address = target or draw.of(*self._ports())
        known = [each for each, at in self._links.items() if at == address]
        if known and draw.random.random() < 0.7:
            return draw.of(*known)
        if len(self._links) >= MAX_LINKS:
            next(iter(self._links)).link.abort()
        made: list[Deaf] = []
        try:
            await self.transport.connect(
                address,
                Wire.KAFKA,
                partial(_accept, made),
                max_frame_bytes=MAX_FRAME_BYTES,
                timeout_ms=CONNECT_TIMEOUT_MS,
            )
        except TransportError:
            return None
        self._links[made[0]] = address
        return made[0]

    def _ports(self) -> list[Address]:
        brokers = [Address(each.name, CLIENT_PORT) for each in self.cluster.brokers]
        controllers = [Address(each.name, CONTROLLER_PORT) for each in self.cluster.controllers]
        return [*brokers, *brokers, *controllers]


def _accept(made: list[Deaf], link: Link) -> Deaf:
    made.append(Deaf(link))
    return made[0]
