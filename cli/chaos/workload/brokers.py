"""A client's metadata of one topic: the leaders of its partitions, and connections to brokers.

Of two responses about a partition, the one with the higher leader epoch counts (KIP-320). A broker
that is cut off from the controllers answers with stale metadata. Because of the rule, such an
answer does not lead clients back to that broker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate.cli.client.sasl_login import Login
from quorate.cli.client.secured_client import SecuredClient, connected
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.seams import Address, Clock, Transport, TransportError

REFRESH_PAUSE_S = 0.02
METADATA_TIMEOUT_MS = 1000
FAILURES = (ClientError, TransportError)
"""The errors of a call to a broker that has gone or does not answer."""


class NotKnown(ClientError):
    """No response has contained the address of this broker."""

    sent = False
    """The request was not sent (see `ClientError`)."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition and its leader epoch."""

    epoch: int
    node_id: int


class Brokers:
    """The metadata and connections of one client, owned by its event loop.

    Invariant: the epoch of a known leader never decreases."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        bootstrap: Sequence[Address],
        topic: str,
        settings: ClientSettings,
        login: Login | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """Each connection of `transport` begins with the `login`, if there is one. `chance` has the
        random numbers of this client alone, so that those of others do not change them."""
        self.topic = topic
        self.topic_id: Uuid = ZERO_UUID
        self.leaders: dict[int, Leader] = {}
        self._transport = transport
        self._clock = clock
        self._settings = settings
        self._bootstrap = list(bootstrap)
        self._addresses: dict[int, Address] = {}
        self._login = login
        self._chance = chance or random.Random(0)
        self._clients: dict[Address, SecuredClient] = {}
        self._replaced: list[KafkaClient] = []
        """Connections whose session ends, and whose last requests are still in flight."""
        self._connecting: dict[Address, asyncio.Lock] = {}
        self._refreshing = asyncio.Lock()
        self._refreshed = 0
        self._silent: set[Address] = set()
        """The bootstrap servers that did not answer the last time they were asked."""

    @property
    def known(self) -> list[int]:
        """Return the ids of the brokers in any Metadata response so far."""
        return sorted(self._addresses)

    def shuffled(self) -> list[int]:
        """Return the ids of the known brokers in a random order."""
        return self._chance.sample(self.known, len(self._addresses))

    def leader(self, partition: int) -> int:
        """Return the id of the partition's leader, or -1 if it has none or none is known."""
        known = self.leaders.get(partition)
        return -1 if known is None else known.node_id

    def led_by(self, node_id: int) -> list[int]:
        """Return the partitions that the broker leads, according to the known metadata."""
        return sorted(p for p, leader in self.leaders.items() if leader.node_id == node_id)

    async def call(self, node_id: int, request: Message, **options: Any) -> Any:
        """Send a request to a broker and return its response, which may contain errors.

        `options` are those of `KafkaClient.call`. Raise one of FAILURES if the broker's address is
        unknown, the connection fails, or it does not answer."""
        address = self._addresses.get(node_id)
        if address is None:
            raise NotKnown(f"broker {node_id} is not known")
        client = await self._connected(address)
        return await client.call(request, **options)

    async def refresh(self, last: int = -1) -> None:
        """Read the metadata from any bootstrap server, after a pause of REFRESH_PAUSE_S.

        `last` is tried only if no other broker answers, because a request to it has just failed.
        Servers that did not answer the last time are tried after the others.
        Concurrent callers share one request. If no broker answers, the metadata stays as it is, as
        do the leaders if the response has an error for the topic."""
        seen = self._refreshed
        async with self._refreshing:
            if self._refreshed != seen:
                return
            await asyncio.sleep(REFRESH_PAUSE_S)
            shuffled = self._chance.sample(self._bootstrap, len(self._bootstrap))
            failed = {*self._silent, self._addresses.get(last)}
            for address in sorted(shuffled, key=lambda each: each in failed):
                try:
                    client = await self._connected(address)
                    answer = await client.call(self._request(), timeout_ms=METADATA_TIMEOUT_MS)
                except FAILURES:
                    self._silent.add(address)
                    continue
                self._silent.discard(address)
                self._learn(answer)
                break
            self._refreshed += 1

    def close(self) -> None:
        """Close all connections."""
        for client in (*(each.client for each in self._clients.values()), *self._replaced):
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
            found = self._clients.get(address)
            if found is None or not found.usable(self._clock.now_ms()):
                if found is not None:
                    self._replace(self._clients.pop(address).client)
                self._clients[address] = found = await connected(
                    self._transport, self._clock, address, self._settings, self._login
                )
            return found.client

    def _replace(self, client: KafkaClient) -> None:
        """Keep a connection until its requests have their responses, or time out."""
        kept = []
        for each in (*self._replaced, client):
            if each.in_flight:
                kept.append(each)
            else:
                each.close()
        self._replaced = kept
