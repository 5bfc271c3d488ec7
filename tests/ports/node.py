"""A cluster on virtual time, with one controller and one broker, and raw connections to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from quorate.quorum.ids import Uuid
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address, Link, Wire
from tests.ports.requests import READ, WRITTEN, World, preparation
from tests.sim.world.cluster import CLIENT_PORT, CONTROLLER_PORT, Shape, SimCluster
from tests.sim.world.loop import SimLoop
from tests.sim.world.shape import Quorum
from tests.sim.world.transport import SimTransport

BROKER_ID = 2
BROKER_PORT = Address("b2", CLIENT_PORT)
CONTROLLERS_PORT = Address("c1", CONTROLLER_PORT)
OVERRIDES = {
    "min.insync.replicas": "1",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
}
ANSWER_TIMEOUT_S = 30.0
MAX_FRAME_BYTES = 64 << 20


class Raw:
    """A LinkHandler that keeps the received frames."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.frames: list[memoryview] = []
        self.closed = False

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(frame)

    def on_closed(self, error: Exception | None) -> None:
        self.closed = True


class PortCluster:
    """A small simulated cluster whose ports a test uses through raw connections (`connect`).

    `ask` sends one request and lets virtual time pass until the answer has arrived."""

    """The cluster and its virtual time. The test talks to its first broker."""

    def __init__(
        self,
        loop: SimLoop,
        overrides: Mapping[str, str],
        controllers: int = 1,
        brokers: int = 1,
        quorum: Quorum = Quorum.STATIC,
    ) -> None:
        self.loop = loop
        self.broker_id = controllers + 1
        self.broker_port = Address(f"b{self.broker_id}", CLIENT_PORT)
        shape = Shape(
            controllers=controllers,
            brokers=brokers,
            quorum=quorum,
            overrides={**OVERRIDES, **overrides},
        )
        self.cluster = SimCluster(loop, "ports", shape)
        self.host = self.cluster.network.boot("client")
        self._transport = SimTransport(self.cluster.network, self.host)
        self.cluster.start_all()
        self.until(self._serves)

    def until(self, condition: object) -> None:
        """Run the cluster until the condition holds, for ANSWER_TIMEOUT_S at most."""
        assert callable(condition)
        deadline_s = self.loop.time() + ANSWER_TIMEOUT_S
        while not condition():
            assert self.loop.time() < deadline_s, "not in time"
            self.run(0.02)

    def run(self, seconds: float) -> None:
        """Run the cluster for some seconds of virtual time. Raise the failure of a node."""
        self.loop.run_for(seconds)
        if self.cluster.failed.done():
            self.cluster.failed.result()

    def connect(self, address: Address) -> Raw:
        """Return a connection to a Kafka port."""
        made: list[Raw] = []

        def accept(link: Link) -> Raw:
            made.append(Raw(link))
            return made[0]

        async def connected() -> None:
            await self._transport.connect(
                address, Wire.KAFKA, accept, max_frame_bytes=MAX_FRAME_BYTES, timeout_ms=5000
            )

        task = self.host.spawn(connected())
        self.until(task.done)
        task.result()
        return made[0]

    def send(self, raw: Raw, request: Message, version: int, correlation_id: int) -> None:
        """Send a request and do not wait."""
        api = APIS[request.API_KEY]
        head = headers.request_header(
            api.key, version, correlation_id, "test", api.request_header_version(version)
        )
        raw.link.send(head, encode(request, version))

    def ask(self, raw: Raw, request: Message, version: int) -> Message:
        """Send the request, and return its response."""
        api = APIS[request.API_KEY]
        raw.frames.clear()
        self.send(raw, request, version, 7)
        self.until(lambda: raw.frames or raw.closed)
        assert not raw.closed, f"{api.name} v{version} was not answered"
        (frame,) = raw.frames
        assert headers.read_correlation_id(frame) == 7
        body = headers.response_body(frame, api.response_header_version(version))
        answer: Message = decode(api.response, version, body)
        return answer

    def prepared(self) -> World:
        """Create what the requests of `tests/ports/requests.py` name, and return the ids."""
        raw = self.connect(self.broker_port)
        for request, version in preparation():
            self.ask(raw, request, version)
        self.run(1.0)
        world = World(
            self.broker_id, topic_id=self._topic_id(raw, WRITTEN), read_id=self._topic_id(raw, READ)
        )
        raw.link.abort()
        return world

    def _topic_id(self, raw: Raw, name: str) -> Uuid:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
        topic_id: Uuid = self.ask(raw, request, 12).topics[0].topic_id  # type: ignore[attr-defined]
        return topic_id

    def _serves(self) -> bool:
        image = self.cluster.newest_image()
        return all(
            broker.process is not None
            and broker.process.broker is not None
            and broker.process.broker.running
            and broker.id in image.brokers
            and not image.brokers[broker.id].fenced
            for broker in self.cluster.brokers
        )


@contextmanager
def running(controllers: int = 1, brokers: int = 1, **overrides: str) -> Iterator[PortCluster]:
    """Run a cluster, whose first broker the test talks to. `overrides` are properties, with `_`
    for `.`."""
    properties = {name.replace("_", "."): text for name, text in overrides.items()}
    with running_quorum(Quorum.STATIC, controllers, brokers, properties) as node:
        yield node


@contextmanager
def running_quorum(
    quorum: Quorum, controllers: int, brokers: int, properties: Mapping[str, str]
) -> Iterator[PortCluster]:
    """Run a cluster whose voters are named as `quorum` says."""
    loop = SimLoop()
    asyncio.set_event_loop(loop)
    try:
        node = PortCluster(loop, properties, controllers, brokers, quorum)
        yield node
        node.cluster.close()
    finally:
        asyncio.set_event_loop(None)
        loop.close()
