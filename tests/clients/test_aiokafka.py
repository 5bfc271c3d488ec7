"""aiokafka against real processes: codecs, offsets by time, and a leader that dies meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]

from tests.clients.cluster import ProcessCluster

pytestmark = pytest.mark.clients

RECORDS = 100
TIMEOUT_S = 60
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@asynccontextmanager
async def started(client: Any, stop: str = "stop") -> AsyncIterator[Any]:
    await client.start()
    try:
        yield client
    finally:
        await getattr(client, stop)()


async def create(cluster: ProcessCluster, name: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    async with started(admin, "close"):
        answer = await admin.create_topics([NewTopic(name, 1, 3)])
        assert [each[1] for each in answer.topic_errors] == [0]


async def read(cluster: ProcessCluster, name: str, count: int, *, since_ms: int = 0) -> list[bytes]:
    partition = TopicPartition(name, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap)
    async with started(consumer):
        consumer.assign([partition])
        found = await consumer.offsets_for_times({partition: since_ms})
        consumer.seek(partition, found[partition].offset)
        return [(await consumer.getone()).value for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
async def test_codecs_idempotence_and_offsets_by_time(
    cluster: ProcessCluster, new_topic: Callable[[], str], codec: str | None
) -> None:
    name = new_topic()
    sent = [b"%d " % number * 20 for number in range(RECORDS)]
    async with asyncio.timeout(TIMEOUT_S):
        await create(cluster, name)
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, enable_idempotence=True, compression_type=codec
        )
        async with started(producer):
            futures = [
                await producer.send(name, value, partition=0, timestamp_ms=1_000 + number)
                for number, value in enumerate(sent)
            ]
            offsets = [(await future).offset for future in futures]
        assert offsets == list(range(RECORDS))
        assert await read(cluster, name, RECORDS) == sent
        assert await read(cluster, name, RECORDS - 40, since_ms=1_040) == sent[40:]


async def test_the_leader_dies_while_it_writes(own_cluster: ProcessCluster) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await create(own_cluster, "orders")
        producer = AIOKafkaProducer(
            bootstrap_servers=own_cluster.bootstrap, enable_idempotence=True
        )
        sent = [b"%d" % number for number in range(3 * RECORDS)]
        async with started(producer):
            for number, value in enumerate(sent):
                await producer.send_and_wait("orders", value, partition=0)
                if number == RECORDS:
                    leader = producer.client.cluster.leader_for_partition(
                        TopicPartition("orders", 0)
                    )
                    await asyncio.to_thread(own_cluster.kill, leader)
        assert await read(own_cluster, "orders", len(sent)) == sent
