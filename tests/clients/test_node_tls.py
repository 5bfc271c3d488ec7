"""Nodes that prove their ids to each other, on real sockets.

The cluster runs in this process. The strangers open real connections to the ports of its nodes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    TopicPartition,
)

from quorate.broker.local.cluster import Cluster
from quorate.broker.local.layout import Shape
from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.node_http import NodeHttp
from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.protocol.schemas.fetch import FetchRequest, ReplicaState
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.handshake import ClientHandshake, NodeSettings
from quorate.quorum.rpc.kafka.client import ClientError, KafkaClient
from quorate.quorum.rpc.node_identity import NodeProof, node_uri
from quorate.quorum.rpc.tls.dialing_transport import DialingTransport
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, Link, PeerIdentity, TransportError, Wire
from quorate.quorum.watch import http_tokens
from tests.certificates import Files, authority, certificate, files

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]
PROTOCOLS = "PLAINTEXT:PLAINTEXT,REPLICATION:SSL,CONTROLLER:SSL"
CONTROLLER, BROKER, CLAIMED = 1, 4, 5
PARTITIONS = 4
TOKEN = "0123456789abcdef"


@dataclass
class Stranger:
    """The TLS of a stranger that dials a node's port with the certificate `own`, or with none, and
    takes the node for `node`."""

    own: Files | None
    trusted: Path
    node: str

    @property
    def dial_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.trusted))
        context.check_hostname = False
        if self.own is not None:
            context.load_cert_chain(self.own.keystore)
        return context

    def dialed_identity(self, transport: Any) -> PeerIdentity:
        return PeerIdentity(uris=(self.node,), verified=True)


class Secured:
    """A cluster with TLS between its nodes, and the makers of certificates for strangers."""

    def __init__(self, root: Path, shift: int = 0) -> None:
        """Each node gets the certificate of the node whose id is larger by `shift`."""
        self.cluster_id = ""
        self.root = root
        self.shift = shift
        self.cluster = Cluster(Shape(3, 2, {}, self.configs), str(root))

    def configs(self, cluster_id: str, node_id: int) -> Mapping[str, str]:
        self.cluster_id = cluster_id
        token = self.root / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        made = self.made(f"node-{node_id}", uri=node_uri(cluster_id, node_id + self.shift))
        return {
            "listener.security.protocol.map": PROTOCOLS,
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": str(made.keystore),
            "ssl.truststore.location": str(made.ca),
            "quorate.http.token.file": str(token),
        }

    def made(self, name: str, *, uri: str = "", **options: Any) -> Files:
        issued = certificate("CN=somebody", uris=(uri,) if uri else (), **options)
        return files(self.root / f"certificate of {name}", issued)

    def port(self, node_id: int) -> Address:
        ports = self.cluster._layout.node_ports
        return next(address for address, each in ports.items() if each == node_id)

    def stranger(self, kind: str, node_id: int) -> Stranger | None:
        """Return the TLS of one kind of stranger that dials `node_id` and claims to be CLAIMED."""
        if kind == "without TLS":
            return None
        uri = node_uri(self.cluster_id, CLAIMED)
        name = f"{kind} {node_id}"
        options: dict[str, Any] = {
            "that broker": {"uri": uri},
            "a client": {},
            "another node": {"uri": node_uri(self.cluster_id, 9)},
            "another cluster": {"uri": node_uri("other", CLAIMED)},
            "expired": {"uri": uri, "expired": True},
            "another authority": {"uri": uri, "by": authority("fake")},
        }
        own = self.made(name, **options[kind]) if kind in options else None
        trusted = self.root / "ca.pem"
        trusted.write_bytes(authority().certificate_pem)
        return Stranger(own, trusted, node_uri(self.cluster_id, node_id))


@pytest.fixture
async def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Secured]:
    monkeypatch.setattr(http_tokens, "CHECK_INTERVAL_S", 0.05)
    made = Secured(tmp_path)
    try:
        await made.cluster.start()
        yield made
    finally:
        await made.cluster.close(orderly=False)


async def shaken_hands(secured: Secured, kind: str, node_id: int) -> str:
    """Say to a node's port that this is CLAIMED. Return the reason of a refusal."""
    running = secured.cluster._nodes[CLAIMED].running
    assert running is not None
    result: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def up(channel: Channel) -> None:
        result.set_result("")
        channel.abort()

    def failed(error: Exception) -> None:
        if not result.done():
            result.set_result(str(error) or type(error).__name__)

    settings = NodeSettings(
        clock=AsyncioClock(),
        hello=running.core.hello,
        handlers={},
        proof=NodeProof(secured.cluster_id, required=False),
    )

    def accept(link: Link) -> ClientHandshake:
        handshake = ClientHandshake(link, settings, up, lambda channel: None, failed)
        handshake.start(secured.port(node_id), node_id)
        return handshake

    try:
        await AioTransport().connect(
            secured.port(node_id),
            Wire.NODE,
            accept,
            max_frame_bytes=1 << 20,
            timeout_ms=5000,
            tls=secured.stranger(kind, node_id),
        )
    except TransportError as error:
        return str(error)
    return await result


REASONS = {
    "without TLS": "cannot reach",
    "no certificate": "has shown no certificate",
    "a client": "which is no node",
    "another node": "/node/9",
    "another cluster": "quorate://other/",
    "expired": "the certificate of this node has expired",
    "another authority": "the peer does not trust the certificate of this node",
}


async def test_only_the_holder_of_a_nodes_certificate_is_that_node(secured: Secured) -> None:
    for node_id in (CONTROLLER, BROKER):
        assert await shaken_hands(secured, "that broker", node_id) == ""
        for kind, reason in REASONS.items():
            assert reason in await shaken_hands(secured, kind, node_id)


async def fetched(secured: Secured, kind: str, version: int) -> bool:
    """Fetch from the leader's node port as the replica CLAIMED. Return True if it answers."""
    replica: dict[str, Any] = (
        {"replica_id": CLAIMED}
        if version < 15
        else {"replica_state": ReplicaState(replica_id=CLAIMED)}
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(), **replica)
    try:
        stranger = secured.stranger(kind, BROKER)
        transport = DialingTransport(AioTransport(), stranger) if stranger else AioTransport()
        client = await KafkaClient.connect(transport, AsyncioClock(), secured.port(BROKER))
        await client.call(request, version)
    except (ClientError, TransportError):
        return False
    client.close()
    return True


@pytest.mark.parametrize("version", [12, 17])
async def test_only_that_broker_fetches_as_its_replica(secured: Secured, version: int) -> None:
    """A Fetch of a replica moves the high watermark and the ISR."""
    assert await fetched(secured, "that broker", version)
    for kind in REASONS:
        assert not await fetched(secured, kind, version), kind


@pytest.mark.parametrize("kind", ["no certificate", "a client", "another cluster"])
async def test_only_nodes_hold_connections_to_the_port_of_a_broker(
    secured: Secured, kind: str
) -> None:
    """Others could keep followers away with requests that never end."""
    stranger, address = secured.stranger(kind, BROKER), secured.port(BROKER)
    assert stranger is not None
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=stranger.dial_context
    )
    writer.write((1 << 20).to_bytes(4, "big") + b"the beginning of a request")
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()


async def test_http_needs_a_certificate_or_the_token(secured: Secured) -> None:
    certified = secured.stranger("a client", BROKER)
    anonymous = secured.stranger("no certificate", BROKER)
    assert certified is not None
    assert anonymous is not None
    asked = [
        ("/healthz", anonymous, None, 200),
        ("/metrics", anonymous, None, 401),
        ("/metrics", anonymous, TOKEN[::-1], 401),
        ("/v1/changes", anonymous, TOKEN, 200),
        ("/v1/changes", certified, None, 200),
    ]
    for path, stranger, token, status in asked:
        for node_id in (CONTROLLER, BROKER):
            security = ClientSecurity(stranger.dial_context, http_token=token)
            address = secured.port(node_id)
            answer = await asyncio.to_thread(
                NodeHttp(security).get, (address.host, address.port), path
            )
            assert answer is not None
            assert answer.status == status, (path, node_id)
    security = ClientSecurity(certified.dial_context)
    host, port = (address := secured.port(CONTROLLER)).host, address.port
    found = await asyncio.to_thread(NodeHttp(security).get, (host, port), "/v1/targets")
    assert found is not None
    assert {each["labels"]["__scheme__"] for each in json.loads(found.body)} == {"https"}
    (secured.root / "token").write_text(TOKEN * 2)
    ask = NodeHttp(ClientSecurity(anonymous.dial_context, http_token=TOKEN * 2)).get
    async with asyncio.timeout(10):
        status = 401
        while status == 401:
            await asyncio.sleep(0.05)
            renewed = await asyncio.to_thread(ask, (host, port), "/metrics")
            status = 0 if renewed is None else renewed.status
    assert status == 200


async def produced(bootstrap: str, stop: asyncio.Event) -> int:
    """Produce to all partitions with acks=all until `stop`, and at least one record to each.

    Return the number of acknowledged records. Raise an exception if one is not acknowledged."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    count = 0
    try:
        while not stop.is_set() or count < PARTITIONS:
            await producer.send_and_wait("t", b"%d" % count, partition=count % PARTITIONS)
            count += 1
    finally:
        await producer.stop()
    return count


async def consumed(bootstrap: str, count: int) -> list[int]:
    """Read `count` records from the beginning of all partitions. Return their numbers, sorted."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition("t", number) for number in range(PARTITIONS)])
        return sorted([int((await consumer.getone()).value) for _ in range(count)])
    finally:
        await consumer.stop()


async def test_records_are_replicated_and_a_controller_may_die(secured: Secured) -> None:
    cluster, stop = secured.cluster, asyncio.Event()
    await cluster.create_topic("t", partitions=PARTITIONS, replication_factor=2)
    work = asyncio.create_task(produced(cluster.bootstrap, stop))
    await cluster.kill_controller()
    await cluster.create_topic("after", replication_factor=2)
    stop.set()
    count = await work
    assert await consumed(cluster.bootstrap, count) == list(range(count))


async def test_a_node_refuses_the_certificate_of_another_one(tmp_path: Path) -> None:
    made = Secured(tmp_path, shift=10)
    try:
        with pytest.raises(ConfigError, match=r"lacks the URI quorate://.*/node/1, by which"):
            await made.cluster.start()
    finally:
        await made.cluster.close(orderly=False)


@pytest.mark.long
async def test_a_running_cluster_switches_to_tls_under_load(tmp_path: Path) -> None:
    """The sequence of docs/security.md: three rolling restarts, and no record is lost."""
    made = Secured(tmp_path)
    secure = dict(made.cluster._layout.configs)
    cluster, stop = made.cluster, asyncio.Event()
    for node_id, node in cluster._nodes.items():
        node._config = without_tls(secure[node_id])
    try:
        await cluster.start()
        await cluster.create_topic("t", partitions=PARTITIONS, replication_factor=2)
        work = asyncio.create_task(produced(cluster.bootstrap, stop))
        for mode in ("accept", "dial", "require"):
            for node_id, node in cluster._nodes.items():
                await cluster.stop(node_id)
                node._config = with_mode(secure[node_id], mode)
                await cluster.restart(node_id)
                await cluster.wait_ready()
                await cluster.wait_in_sync("t")
        stop.set()
        count = await work
        assert await consumed(cluster.bootstrap, count) == list(range(count))
        assert "cannot reach" in await shaken_hands(made, "without TLS", BROKER)
    finally:
        await cluster.close(orderly=False)


def given(config: NodeConfig) -> dict[str, str]:
    """Return the properties that are set, as text."""
    return {name: str(each.text) for name, each in config.settings.items() if not each.is_default}


def without_tls(config: NodeConfig) -> NodeConfig:
    """Return the configuration of the same node before it had TLS."""
    settings = {name: text for name, text in given(config).items() if not name.startswith("ssl.")}
    settings["listener.security.protocol.map"] = PROTOCOLS.replace("SSL", "PLAINTEXT")
    return load(None, environment={}, overrides=settings, hostname="127.0.0.1")


def with_mode(config: NodeConfig, mode: str) -> NodeConfig:
    """Return the configuration of the same node with this value of quorate.node.tls."""
    settings = {**given(config), "quorate.node.tls": mode}
    return load(None, environment={}, overrides=settings, hostname="127.0.0.1")
