"""The cluster under attack: its addresses, and the few questions that an attack has to ask."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterRequest,
    DescribeQuorumRequest,
    QuorumPartition,
    QuorumTopic,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address
from tests.attacks.newcomers import Unserved
from tests.attacks.raw import ANSWER_TIMEOUT_S, CLIENT_ID, Raw, framed, request

TOPIC = "attacked"
PARTITIONS = 3
METADATA_VERSION = 12
LEADER_TRIES = 100
LEADER_PAUSE_S = 0.1
Outcome = Counter[str]
"""Counts of what happened to an attack's requests: answered, closed, silent, not connected."""
NOT_CONNECTED = "not connected"


def reached(outcome: Mapping[str, int]) -> bool:
    """Return True if an attack with this outcome has reached a node at all."""
    return any(count for what, count in outcome.items() if what != NOT_CONNECTED)


class NotServed(Exception):
    """The cluster does not answer a harmless question of the attacker."""


class Succeeded(Exception):
    """The cluster did what an attack must not get out of it."""


@dataclass(slots=True)
class Target:
    brokers: Sequence[Address]
    controllers: Sequence[Address]
    quick: bool = False
    """True asks the attacks for the small form that `make test` has time for."""
    fault_sockets: Sequence[Path] = ()
    """The fault sockets of the nodes that run with `--faults`."""
    outcome: Outcome = field(default_factory=Counter)
    unserved: list[Unserved] = field(default_factory=list)
    """The newcomers of this attack that were not served."""
    cluster_id: str = ""
    topic_id: Any = None

    async def prepare(self) -> None:
        """Create the topic that attacks write to, and learn the cluster's id."""
        described = await self.tell(
            self.brokers[0], DescribeClusterRequest(include_cluster_authorized_operations=False), 0
        )
        self.cluster_id = described.cluster_id
        new = CreatableTopic(
            name=TOPIC,
            num_partitions=PARTITIONS,
            replication_factor=min(3, len(self.brokers)),
            assignments=(),
            configs=(),
        )
        await self.tell(self.brokers[0], CreateTopicsRequest(topics=(new,), timeout_ms=10_000), 5)
        await self.leader_of(TOPIC, PARTITIONS - 1)

    async def tell(self, address: Address, message: Message, version: int) -> Any:
        """Return the answer to a harmless request, or raise NotServed."""
        connection = await Raw.open(address)
        try:
            answer = await connection.ask(message, version)
        finally:
            connection.close()
        if answer is None:
            raise NotServed(f"{address} does not answer {type(message).__name__} v{version}")
        return answer

    async def metadata(self, name: str) -> Any:
        topics = (MetadataRequestTopic(name=name),)
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return await self.tell(self.brokers[0], asked, METADATA_VERSION)

    async def leader_of(self, name: str, partition: int) -> Address:
        """Return the address of the partition's leader; raise NotServed if none appears."""
        for _ in range(LEADER_TRIES):
            found = await self.metadata(name)
            self.topic_id = found.topics[0].topic_id
            places = {each.node_id: Address(each.host, each.port) for each in found.brokers}
            for each in found.topics[0].partitions:
                if each.partition_index == partition and each.leader_id in places:
                    return places[each.leader_id]
            await asyncio.sleep(LEADER_PAUSE_S)
        raise NotServed(f"{name}-{partition} gets no leader")

    async def quorum(self) -> tuple[int, int]:
        """Return the id and the epoch of the active controller."""
        topic = QuorumTopic(
            topic_name="__cluster_metadata", partitions=(QuorumPartition(partition_index=0),)
        )
        answer = await self.tell(self.brokers[0], DescribeQuorumRequest(topics=(topic,)), 0)
        partition = answer.topics[0].partitions[0]
        return partition.leader_id, partition.leader_epoch

    async def fire(
        self,
        address: Address,
        *messages: tuple[Message, int],
        client_id: str = CLIENT_ID,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        """Send the requests over one connection, one after the other, and count what happened."""
        frames = [framed(request(each, version, client_id)) for each, version in messages]
        await self.fire_frames(address, *frames, timeout_s=timeout_s)

    async def fire_frames(
        self, address: Address, *frames: bytes, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> str:
        """Send complete frames over one connection; stop when it is closed.

        Return "" if each of them was answered, and otherwise what happened instead."""
        try:
            connection = await Raw.open(address)
        except (OSError, TimeoutError) as error:
            self.outcome[NOT_CONNECTED] += 1
            return f"{NOT_CONNECTED}: {error!r}"
        try:
            for each in frames:
                sent = await connection.send(each, timeout_s)
                answer = await connection.frame(timeout_s) if sent else None
                if answer is not None:
                    self.outcome["answered"] += 1
                    continue
                missing = "closed" if connection.reader.at_eof() else "silent"
                self.outcome[missing] += 1
                return missing
        finally:
            connection.close()
        return ""
