"""One real node, broker and controller at once, in this process, on real sockets and files."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.broker.node import BrokerNode
from quorate.config.loader import load
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.ids import random_uuid, uuid_to_text
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.offline.storage_format import format_directory
from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, Seams

PATIENCE_S = 15.0


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.body.splitlines()]


async def get(address: Address, target: str) -> Answer:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    status, *headers = head.decode().split("\r\n")
    return Answer(int(status.split()[1]), dict(each.split(": ", 1) for each in headers), body)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (nobody tells of it)
            await asyncio.sleep(0.005)


@dataclass
class CombinedNode:
    """A real node that is controller and broker at once, on the event loop of the test."""

    core: NodeCore
    controller: ControllerNode
    broker: BrokerNode

    @property
    def controller_address(self) -> Address:
        return self.controller.addresses[0]

    @property
    def node_address(self) -> Address:
        return self.broker.address("REPLICATION")

    async def get(self, target: str) -> Answer:
        return await get(self.controller_address, target)

    async def ask(self, request: object) -> Any:
        """An admin request, ruled on by the controller."""
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.controller.shell.submit(request, answer.set_result)
        return await answer


async def create_topic(node: CombinedNode, name: str, partitions: int = 2) -> None:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    answer = await node.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    assert [each.error_code for each in answer.topics] == [0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@asynccontextmanager
async def made(directory: Path) -> AsyncIterator[CombinedNode]:
    """Its ports are open; it does nothing before `core.start()`."""
    port = free_port()
    config = load(
        None,
        environment={},
        overrides={
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"
            ",REPLICATION://127.0.0.1:0",
            "log.dirs": str(directory),
            "broker.session.timeout.ms": "60000",
        },
        hostname="127.0.0.1",
    )
    random_ = random.Random(1)
    disk, clock = OsDisk(), AsyncioClock()
    format_directory(
        disk,
        config,
        cluster_id=uuid_to_text(random_uuid(random_)),
        directory_id=random_uuid(random_),
        wall_ms=clock.wall_ms(),
    )
    failures: list[BaseException] = []
    core = NodeCore(config, Seams(clock, random_, AioTransport(), disk), failures.append)
    node = CombinedNode(core, ControllerNode(core), BrokerNode(core))
    try:
        await node.controller.start()
        await node.broker.start()
        yield node
    finally:
        core.close()
        await node.broker.close()
        await node.controller.close()
        core.release()
    assert not failures


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[CombinedNode]:
    async with made(directory) as node:
        node.core.start()
        await until(lambda: node.broker.running)
        yield node
