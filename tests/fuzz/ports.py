"""The ports of a controller and a broker, on virtual time: one frame is one input.

A frame crashes the target if a node stops itself, or if anything reaches the event loop's
exception handler. The simulated cluster reports both.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.produce import ProduceResponse
from quorate.quorum.rpc.hello import Hello, HelloReply
from quorate.quorum.rpc.messages import sole_message
from quorate.quorum.seams import Address, Link, Wire
from tests.attacks.node_frames import hello, node_frame, row
from tests.attacks.target import TOPIC
from tests.fuzz import messages, requests
from tests.fuzz.http_heads import a_target, targets
from tests.fuzz.streams import in_list, pieces
from tests.fuzz.target import IncrementalWork, Target
from tests.ports.fuzz import MUTATIONS as DAMAGE
from tests.ports.fuzz import valid
from tests.ports.node import (
    BROKER_PORT,
    CONTROLLERS_PORT,
    MAX_FRAME_BYTES,
    PortCluster,
    Raw,
    running,
)
from tests.ports.obeyed import is_obeyed
from tests.ports.requests import READ, World, create, produced

STEP_S = 0.02
ALONE_STEPS = 25
"""Steps for which a systematic input waits for its answer."""
SETTLE_S = 30.0
SERVED_S = 60.0
REPLICATION_KEYS = (ApiKey.FETCH,)
CONNECT_TIMEOUT_MS = 5000


@dataclass(slots=True)
class Shared:
    """The cluster that a target sends to, with the topics that usual requests name."""

    node: PortCluster
    world: World

    @property
    def replication(self) -> Address:
        (broker,) = self.node.cluster.brokers
        assert broker.process is not None and broker.process.broker is not None
        return Address("b2", broker.process.broker.address("REPLICATION").port)

    @property
    def controller(self) -> ReplicaKey:
        (controller,) = self.node.cluster.controllers
        return controller.key

    def connect(self, address: Address, wire: Wire) -> Raw:
        made: list[Raw] = []

        def accept(link: Link) -> Raw:
            made.append(Raw(link))
            return made[0]

        async def connected() -> None:
            await self.node._transport.connect(
                address,
                wire,
                accept,
                max_frame_bytes=MAX_FRAME_BYTES,
                timeout_ms=CONNECT_TIMEOUT_MS,
            )

        task = self.node.host.spawn(connected())
        self.node.until(task.done)
        task.result()
        return made[0]

    def serves(self) -> None:
        """Raise AssertionError if the broker does not acknowledge a record in time."""
        (broker,) = self.node.cluster.brokers
        self.node.until(self.node._serves)
        assert broker.process is not None
        raw = self.node.connect(BROKER_PORT)
        answer = self.node.ask(raw, produced(READ, self.world.read_id), 9)
        assert isinstance(answer, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        raw.link.abort()


class Port(Target):
    def __init__(self, shared: Shared, address: Address, wire: Wire) -> None:
        self.shared = shared
        self.address = address
        self.wire = wire
        self.raw: Raw | None = None
        self.steps = IncrementalWork(shared.node.loop)

    def feed(self, data: bytes) -> None:
        if self.leaves_out(data):
            self.left_out += 1
            return
        if self.raw is None or self.raw.closed:
            self.raw = self.opened()
        self.raw.frames.clear()
        self.raw.link.send(data)
        self.shared.node.run(STEP_S)

    def feed_alone(self, data: bytes) -> None:
        """Feed an input over a connection on which no earlier input waits for its answer. The
        connection of an input that is not answered in time is replaced."""
        self.feed(data)
        for _ in range(ALONE_STEPS):
            raw = self.raw
            if raw is None or raw.closed or raw.frames:
                return
            self.shared.node.run(STEP_S)
        if self.raw is not None:
            self.raw.link.abort()
            self.raw = None

    def opened(self) -> Raw:
        return self.shared.connect(self.address, self.wire)

    def leaves_out(self, data: bytes) -> bool:
        """Return True for what an honest node obeys, and what then ends the test."""
        return False

    def settle(self) -> None:
        self.shared.node.run(SETTLE_S)

    def check(self) -> None:
        self.shared.serves()


class KafkaPort(Port):
    def __init__(self, shared: Shared, address: Address, keys: tuple[int, ...]) -> None:
        super().__init__(shared, address, Wire.KAFKA)
        self._keys = keys
        self._valid = [
            each
            for each in valid(shared.world)
            if int.from_bytes(each[:2], "big") in keys and not is_obeyed(each)
        ]

    def leaves_out(self, data: bytes) -> bool:
        return is_obeyed(data)

    def systematic(self) -> Iterator[bytes]:
        yield from self._valid
        yield from (each.frame for each in requests.every_request(self._keys))

    def drawn(self, chance: random.Random) -> bytes:
        if chance.random() < 0.6:
            return requests.a_request(self._keys, chance)
        return chance.choice(DAMAGE)(bytearray(chance.choice(self._valid)), chance)


class Pipeline(KafkaPort):
    """Several requests that arrive in one step: an input is a list of pieces, one for each."""

    def feed(self, data: bytes) -> None:
        for frame in pieces(data):
            if not self.leaves_out(frame):
                if self.raw is None or self.raw.closed:
                    self.raw = self.opened()
                self.raw.link.send(frame)
        self.shared.node.run(STEP_S)

    def systematic(self) -> Iterator[bytes]:
        yield in_list(self._valid)
        yield in_list([each for each in self._valid for _ in range(30)])

    def drawn(self, chance: random.Random) -> bytes:
        count = chance.choice((2, 3, 8, 40))
        return in_list([super(Pipeline, self).drawn(chance) for _ in range(count)])


class NodePort(Port):
    """Frames of messages after a good Hello."""

    def __init__(self, shared: Shared, address: Address) -> None:
        super().__init__(shared, address, Wire.NODE)

    @property
    def sender(self) -> messages.Sender:
        return messages.Sender(cluster_id=self.cluster_id, peer=self.shared.controller)

    @property
    def cluster_id(self) -> str:
        return self.shared.node.cluster.cluster_id

    def opened(self) -> Raw:
        raw = super().opened()
        me = self.sender.me
        greeting = hello(self.cluster_id, me.id, directory_id=me.directory_id)
        raw.link.send(node_frame(row(greeting, 0)))
        self.shared.node.until(lambda: raw.frames or raw.closed)
        assert raw.frames, "the node closes the link in place of an answer to a good Hello"
        reply: HelloReply = sole_message(raw.frames[0], HelloReply)
        assert isinstance(reply.hello, Hello), f"a good Hello is refused: {reply.refusal}"
        return raw

    def systematic(self) -> Iterator[bytes]:
        for each in messages.every_row(self.sender):
            yield node_frame(each)

    def drawn(self, chance: random.Random) -> bytes:
        return messages.a_frame(self.sender, chance)


class BrokerPort(NodePort):
    """Frames of a link whose Hello names the broker of the cluster itself."""

    @property
    def sender(self) -> messages.Sender:
        (broker,) = self.shared.node.cluster.brokers
        found = self.shared.node.cluster.newest_image().brokers.get(broker.id)
        return messages.Sender(
            cluster_id=self.cluster_id,
            peer=self.shared.controller,
            me=broker.key,
            broker_epoch=1 if found is None else found.epoch,
            topic_id=self.shared.world.topic_id,
        )


class NodeGreeting(NodePort):
    """The first frame of a link; every input has a link of its own."""

    def opened(self) -> Raw:
        return Port.opened(self)

    def feed(self, data: bytes) -> None:
        super().feed(data)
        if self.raw is not None:
            self.raw.link.abort()
            self.raw = None


class HttpPort(Port):
    """The target of a GET, after the head was read; every input has a link of its own."""

    def __init__(self, shared: Shared, address: Address) -> None:
        super().__init__(shared, address, Wire.HTTP)

    def systematic(self) -> Iterator[bytes]:
        yield from targets()

    def drawn(self, chance: random.Random) -> bytes:
        return a_target(chance)


@contextmanager
def shared() -> Iterator[Shared]:
    with running() as node:
        raw = node.connect(BROKER_PORT)
        node.ask(raw, create(TOPIC, 3), 5)
        raw.link.abort()
        yield Shared(node, node.prepared())


def everything() -> tuple[int, ...]:
    return tuple(sorted(APIS))


@contextmanager
def client_port() -> Iterator[Target]:
    with shared() as made:
        yield KafkaPort(made, BROKER_PORT, everything())


@contextmanager
def pipelines() -> Iterator[Target]:
    with shared() as made:
        yield Pipeline(made, BROKER_PORT, everything())


@contextmanager
def controller_port() -> Iterator[Target]:
    with shared() as made:
        yield KafkaPort(made, CONTROLLERS_PORT, everything())


@contextmanager
def replication_port() -> Iterator[Target]:
    with shared() as made:
        yield KafkaPort(made, made.replication, REPLICATION_KEYS)


@contextmanager
def node_messages() -> Iterator[Target]:
    with shared() as made:
        yield NodePort(made, CONTROLLERS_PORT)


@contextmanager
def node_messages_to_a_broker() -> Iterator[Target]:
    with shared() as made:
        yield NodePort(made, made.replication)


@contextmanager
def messages_of_a_broker() -> Iterator[Target]:
    with shared() as made:
        yield BrokerPort(made, CONTROLLERS_PORT)


@contextmanager
def node_greeting() -> Iterator[Target]:
    with shared() as made:
        yield NodeGreeting(made, CONTROLLERS_PORT)


@contextmanager
def http_port() -> Iterator[Target]:
    with shared() as made:
        yield HttpPort(made, CONTROLLERS_PORT)
