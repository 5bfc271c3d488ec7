"""The same records to a compacted topic of Apache Kafka 4.1.1 and of ours: the same ones are left,
and the same ones are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.clients.cluster import wait_for
from tests.golden.nodes import KAFKA, QUORATE
from tests.kafka.one_node import Connection, OneNode
from tests.kafka.tools import kafka, missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
TOPIC = "kept"
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "5",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "3600000",
}
SETTINGS = ("log.cleaner.backoff.ms=100", "log.flush.offset.checkpoint.interval.ms=200")
BEGAN_MS = 1_700_000_000_000
BATCHES = 40
CLEANED_S = 60.0
# The time of the cleaning, and what follows from it or from other positions.
CHANGING = re.compile(r" (deleteHorizonMs: OptionalLong)\[\d+\]| (?:crc|position|size): \d+")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[OneNode]]:
    if reason := missing():
        pytest.skip(reason)
    root: Path = tmp_path_factory.mktemp("compaction")
    with (
        OneNode(root / "kafka", KAFKA, *SETTINGS).running() as theirs,
        OneNode(root / "quorate", QUORATE, *SETTINGS).running() as ours,
    ):
        for node in (theirs, ours):
            connection = node.connect()
            configs = tuple(CreatableTopicConfig(name=n, value=v) for n, v in CONFIGS.items())
            topic = CreatableTopic(
                name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=configs
            )
            connection.ask(CreateTopicsRequest(topics=(topic,)), 7)
            first = batch(Record(0, BEGAN_MS, b"first", b"v"))
            wait_for(
                lambda connection=connection, first=first: not produced(connection, first)[0],  # type: ignore[misc]
                "the partition has a leader",
            )
            connection.close()
        yield [theirs, ours]


def batch(*records: Record, codec: Codec = Codec.NONE) -> bytes:
    return bytes(build_batch(records, leader_epoch=-1, codec=codec))


def produced(connection: Connection, data: bytes) -> tuple[int, str | None, object]:
    partition = PartitionProduceData(index=0, records=data)
    topic = TopicProduceData(name=TOPIC, partition_data=(partition,))
    answer = connection.ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(topic,)), 9)
    assert isinstance(answer, ProduceResponse)
    result = answer.responses[0].partition_responses[0]
    return result.error_code, result.error_message, result.record_errors


def left(node: OneNode) -> list[str]:
    """Return the batches with records, and the records, of all segments but the active one."""
    files = sorted((node.data / f"{TOPIC}-0").glob("*.log"))[:-1]
    listed = ",".join(str(each) for each in files)
    done = kafka("dump-log", "--deep-iteration", "--print-data-log", "--files", listed)
    lines = [CHANGING.sub(r" \1", line) for line in done.lines]
    return [
        line for line in lines if line.startswith(("baseOffset", "|")) and " count: 0 " not in line
    ]


def test_refused_records_are_named_with_the_same_texts(nodes: list[OneNode]) -> None:
    keys = [b"a", None, None, b"b", None, None]
    data = batch(*(Record(at, BEGAN_MS, key, b"v") for at, key in enumerate(keys)))
    answers = []
    for node in nodes:
        connection = node.connect()
        answers.append(produced(connection, data))
        connection.close()
    assert answers[0] == answers[1]
    assert answers[0][0] == 87


def test_the_same_records_are_left(nodes: list[OneNode]) -> None:
    """With gzip and without, with tombstones that are not old enough to go."""
    rand = random.Random(4)
    sent = []
    for number in range(1, BATCHES):
        records = [
            Record(
                each,
                BEGAN_MS + 10 * number,
                b"key-%d" % rand.randrange(8),
                None if rand.random() < 0.3 else b"%d" % number,
            )
            for each in range(rand.randrange(1, 5))
        ]
        sent.append(batch(*records, codec=rand.choice([Codec.NONE, Codec.GZIP])))
    for node in nodes:
        connection = node.connect()
        for data in sent:
            assert produced(connection, data)[0] == 0
        connection.close()

    def records_of(node: OneNode) -> list[str]:
        return [line for line in left(node) if line.startswith("|")]

    def cleaned() -> bool:
        # Of each of the eight keys, and of that of the first batch, one record is left.
        return all(len(records_of(node)) <= 9 for node in nodes)

    wait_for(cleaned, "both logs are compacted", CLEANED_S)
    theirs, ours = (left(node) for node in nodes)
    assert ours == theirs
    assert any("deleteHorizonMs: OptionalLong" in line for line in ours)
    assert any("payload" not in line for line in ours if line.startswith("|")), "tombstones"
