"""A client's view of one topic: who leads which partition, and connections to brokers.

Of two answers about a partition the one with the higher leader epoch counts (KIP-320), so a broker
that hears no controller and answers with what it knew does not lead clients back to itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.rpc.kafka.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from quorate.quorum.rpc.kafka.wire import Message
from quorate.quorum.seams import Address, Clock, Transport, TransportError

REFRESH_PAUSE_S = 0.02
METADATA_TIMEOUT_MS = 1000
FAILURES = (ClientError, TransportError)
"""What a broker does that is gone, or does not answer."""


class NotKnown(ClientError):
    """No address of that broker was ever heard."""

    sent = False


@dataclass(frozen=True, slots=True)
class Leader:
    epoch: int
    node_id: int


class Brokers:
    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        bootstrap: Sequence[Address],
        topic: str,
        settings: ClientSettings,
    ) -> None:
        self.topic = topic
        self.topic_id: Uuid = ZERO_UUID
        self.leaders: dict[int, Leader] = {}
        self._transport = transport
        self._clock = clock
        self._settings = settings
        self._bootstrap = list(bootstrap)
        self._addresses: dict[int, Address] = {}
        self._clients: dict[Address, KafkaClient] = {}
        self._connecting: dict[Address, asyncio.Lock] = {}
        self._refreshing = asyncio.Lock()
        self._refreshed = 0

    @property
    def known(self) -> list[int]:
        """Brokers that were alive by some answer."""
        return sorted(self._addresses)

    def leader(self, partition: int) -> int:
        """-1: none."""
        known = self.leaders.get(partition)
        return -1 if known is None else known.node_id

    def led_by(self, node_id: int) -> list[int]:
        return sorted(p for p, leader in self.leaders.items() if leader.node_id == node_id)

    async def call(self, node_id: int, request: Message, **options: Any) -> Any:
        """Raises one of FAILURES."""
        address = self._addresses.get(node_id)
        if address is None:
            raise NotKnown(f"broker {node_id} is not known")
        client = await self._connected(address)
        return await client.call(request, **options)

    async def refresh(self, last: int = -1) -> None:
        """Ask any broker, but `last` only if no other answers: it just said or did nothing good.
        Callers that wait for the same answer ask once."""
        seen = self._refreshed
        async with self._refreshing:
            if self._refreshed != seen:
                return
            await asyncio.sleep(REFRESH_PAUSE_S)
            shuffled = random.sample(self._bootstrap, len(self._bootstrap))
            for address in sorted(shuffled, key=lambda each: each == self._addresses.get(last)):
                try:
                    client = await self._connected(address)
                    answer = await client.call(self._request(), timeout_ms=METADATA_TIMEOUT_MS)
                except FAILURES:
                    continue
                self._learn(answer)
                break
            self._refreshed += 1

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _request(self) -> MetadataRequest:
        topic = MetadataRequestTopic(name=self.topic)
        return MetadataRequest(topics=(topic,), allow_auto_topic_creation=False)

    def _learn(self, answer: MetadataResponse) -> None:
        for node in answer.brokers:
            self._addresses[node.node_id] = Address(node.host, node.port)
        for topic in answer.topics:
            if topic.error_code:
                continue
            self.topic_id = topic.topic_id
            for each in topic.partitions:
                heard = Leader(each.leader_epoch, each.leader_id)
                known = self.leaders.get(each.partition_index)
                if known is None or heard.epoch >= known.epoch:
                    self.leaders[each.partition_index] = heard

    async def _connected(self, address: Address) -> KafkaClient:
        async with self._connecting.setdefault(address, asyncio.Lock()):
            client = self._clients.get(address)
            if client is None or client.closed:
                client = await KafkaClient.connect(
                    self._transport, self._clock, address, self._settings
                )
                self._clients[address] = client
                await client.negotiate()
            return client
