"""A cluster changes its certificate authority while clients produce: docs/security.md, "Change the
authority". All ports have TLS, and clients and nodes prove themselves by certificates."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]

from quorate.broker.local.cluster import Cluster
from quorate.broker.local.layout import Shape
from quorate.broker.local.topics import create_topic, topic_request
from quorate.quorum.node.peers import node_tls
from quorate.quorum.rpc.node_identity import node_uri
from quorate.quorum.rpc.tls.dialing_transport import ClientTls, DialingTransport
from quorate.quorum.rpc.tls.issuing import Issued
from quorate.quorum.rpc.transport import AioTransport
from tests.certificates import ALICE, authority, certificate

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.timeout(120)]
PROTOCOLS = "PLAINTEXT:SSL,REPLICATION:SSL,CONTROLLER:SSL"
TOPIC = "t"
OLD, NEW = authority("old"), authority("new")


class Stores:
    """The keystore and the truststore of one node or client."""

    def __init__(self, root: Path, subject: str, uris: Sequence[str] = ()) -> None:
        root.mkdir()
        self.keystore, self.truststore = root / "keystore.pem", root / "truststore.pem"
        self._subject, self._uris = subject, uris
        self.certify(OLD)
        self.trust(OLD)

    def certify(self, by: Issued) -> None:
        """Replace the certificate by one of this authority."""
        self._put(self.keystore, certificate(self._subject, by=by, uris=self._uris).keystore_pem)

    def trust(self, *authorities: Issued) -> None:
        """Trust these authorities only."""
        self._put(self.truststore, b"".join(each.certificate_pem for each in authorities))

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.rename(path)

    def context(self) -> ssl.SSLContext:
        """Return the context of a client that connects now."""
        context = ssl.create_default_context(cafile=str(self.truststore))
        context.load_cert_chain(self.keystore)
        return context


class Rotation:
    """A cluster whose authority changes, and one client."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = Stores(root / "client", ALICE)
        self.nodes: dict[int, Stores] = {}
        (root / "cluster").mkdir()
        self.cluster = Cluster(Shape(3, 2, {}, self._configs), str(root / "cluster"))

    def _configs(self, cluster_id: str, node_id: int) -> Mapping[str, str]:
        uri = node_uri(cluster_id, node_id)
        self.nodes[node_id] = stores = Stores(self.root / f"node-{node_id}", "CN=node", (uri,))
        return {
            "listener.security.protocol.map": PROTOCOLS,
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": str(stores.keystore),
            "ssl.truststore.location": str(stores.truststore),
            "ssl.client.auth": "required",
        }

    def reloads(self, node_id: int) -> list[int]:
        """Return the number of reloads of each listener of a node."""
        running = self.cluster._nodes[node_id].running
        assert running is not None
        listeners = running.core.tls._listeners.values()
        assert not any(each.failed_reloads for each in listeners)
        return [each.reloads for each in listeners]

    async def change(self, *, certify: Issued | None = None, trust: Sequence[Issued] = ()) -> None:
        """Change the stores of the nodes, one node after the other, while links of one broker come
        and go. Then change those of the client."""
        for node_id, stores in (*self.nodes.items(), (None, self.client)):
            before = [] if node_id is None else self.reloads(node_id)
            if certify is not None:
                stores.certify(certify)
            if trust:
                stores.trust(*trust)
            if node_id is not None:
                await self._reloaded(node_id, before)
        broker = max(self.nodes)
        await self.cluster.stop(broker)
        await self.cluster.restart(broker)
        await self.cluster.wait_ready()
        await self.cluster.wait_in_sync(TOPIC)

    async def _reloaded(self, node_id: int, before: list[int]) -> None:
        """Wait until each listener of a node has read its stores again."""
        while any(map(int.__eq__, before, self.reloads(node_id))):  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic of two replicas."""
        transport = DialingTransport(AioTransport(), ClientTls(self.client.context()))
        address = next(iter(self.cluster._layout.clients.values()))
        await create_topic(transport, address, topic_request(topic, partitions, 2, {}))

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[AIOKafkaProducer]:
        """Connect a producer with the present stores of the client."""
        found = AIOKafkaProducer(
            bootstrap_servers=self.cluster.bootstrap,
            acks="all",
            enable_idempotence=True,
            security_protocol="SSL",
            ssl_context=self.client.context(),
        )
        try:
            await found.start()
            yield found
        finally:
            await found.stop()

    async def steady(self, stop: asyncio.Event) -> list[int]:
        """Produce on one connection until `stop`. Return the acknowledged numbers."""
        sent = list[int]()
        async with self.producer() as producer:
            while not stop.is_set():
                await producer.send_and_wait(TOPIC, b"%d" % (2 * len(sent)), partition=0)
                sent.append(2 * len(sent))
        return sent

    async def newcomers(self, stop: asyncio.Event) -> list[int]:
        """Produce each record on new connections until `stop`. Return the acknowledged numbers."""
        sent = list[int]()
        while not stop.is_set():
            async with self.producer() as producer:
                await producer.send_and_wait(TOPIC, b"%d" % (2 * len(sent) + 1), partition=1)
                sent.append(2 * len(sent) + 1)
            await asyncio.sleep(0.05)
        return sent

    async def read(self, count: int) -> list[int]:
        """Read `count` records from the beginning."""
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self.cluster.bootstrap,
            auto_offset_reset="earliest",
            security_protocol="SSL",
            ssl_context=self.client.context(),
        )
        await consumer.start()
        try:
            return sorted([int((await consumer.getone()).value) for _ in range(count)])
        finally:
            await consumer.stop()


async def test_an_authority_is_replaced_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request of a client fails, and no acknowledged record is lost."""
    monkeypatch.setattr(node_tls, "CHECK_INTERVAL_S", 0.05)
    rotation = Rotation(tmp_path)
    try:
        await rotation.cluster.start()
        await rotation.create(TOPIC, partitions=2)
        await rotation.cluster.wait_in_sync(TOPIC)
        stop = asyncio.Event()
        loads = [asyncio.create_task(each(stop)) for each in (rotation.steady, rotation.newcomers)]
        await rotation.change(trust=(OLD, NEW))
        await rotation.change(certify=NEW)
        await rotation.change(trust=(NEW,))
        await rotation.cluster.kill_controller()
        await rotation.create("after")
        stop.set()
        sent = sorted([each for load in loads for each in await load])
        assert len(sent) > 20
        assert await rotation.read(len(sent)) == sent
        rotation.client.certify(OLD)
        with pytest.raises(KafkaConnectionError):
            async with rotation.producer():
                pass
    finally:
        await rotation.cluster.close(orderly=False)
