"""`quorate replica-verification` against brokers with scripted answers.

The tests cover the requests, and replicas that do not answer, begin later, or are truncated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum.ids import uuid_from_text
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import fetch, list_offsets, metadata
from quorate.quorum.protocol.wire import Message
from tests.unit.cli.fake_kafka import Answer, FakeKafka, fake_kafka

TOPIC, TOPIC_ID = "t", uuid_from_text("3CvK10jmS5C4IvkHBJHxVg")
LEADER = 1
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


def batch(base_offset: int, value: bytes = b"v", epoch: int = 3) -> bytes:
    """Return a batch with one record."""
    return bytes(build_batch([Record(base_offset, 1000, None, value)], leader_epoch=epoch))


@dataclass
class Replica:
    """One replica of a partition on one broker. Each batch has one record."""

    batches: Sequence[bytes]
    start: int = 0
    high_watermark: int = -1
    error: ErrorCode = ErrorCode.NONE
    silent: bool = False

    def __post_init__(self) -> None:
        if self.high_watermark < 0:
            self.high_watermark = self.start + len(self.batches)

    def fetched(self, wanted: fetch.FetchPartition) -> fetch.PartitionData:
        """Return the data for a fetch of this partition."""
        place = wanted.fetch_offset - self.start
        outside = not 0 <= place <= len(self.batches)
        error = ErrorCode.OFFSET_OUT_OF_RANGE if outside else self.error
        return fetch.PartitionData(
            partition_index=wanted.partition,
            error_code=error,
            high_watermark=-1 if error else self.high_watermark,
            records=b"" if error else b"".join(self.batches[place:])[: wanted.partition_max_bytes],
        )


@dataclass
class Broker:
    """A broker with replicas by partition."""

    replicas: dict[int, Replica]
    one_partition: bool = False
    """Its answers hold the records of the first partition only: they are bounded."""
    fetches: list[fetch.FetchRequest] = field(default_factory=list)
    after: Callable[[], None] = lambda: None

    def fetch(self, request: fetch.FetchRequest) -> Message | None:
        """Answer a Fetch, or return None if a replica is silent."""
        self.fetches.append(request)
        wanted = [each for topic in request.topics for each in topic.partitions]
        if any(self.replicas[each.partition].silent for each in wanted):
            return None
        answers = [self.replicas[each.partition].fetched(each) for each in wanted]
        if self.one_partition:
            kept = self.replicas[wanted[0].partition]
            answers[1:] = [
                fetch.PartitionData(
                    partition_index=each.partition_index,
                    high_watermark=kept.high_watermark,
                    records=b"",
                )
                for each in answers[1:]
            ]
        self.after()
        topic = fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=tuple(answers))
        return fetch.FetchResponse(responses=(topic,))

    def offsets(self, request: list_offsets.ListOffsetsRequest) -> Message:
        """As a leader answers."""
        (topic,) = request.topics
        found = []
        for wanted in topic.partitions:
            replica = self.replicas[wanted.partition_index]
            offset = {-1: replica.high_watermark, -2: replica.start}.get(wanted.timestamp, -1)
            found.append(
                list_offsets.ListOffsetsPartitionResponse(
                    partition_index=wanted.partition_index, offset=offset
                )
            )
        answer = list_offsets.ListOffsetsTopicResponse(name=TOPIC, partitions=tuple(found))
        return list_offsets.ListOffsetsResponse(topics=(answer,))


@contextmanager
def serving(brokers: dict[int, Broker]) -> Iterator[str]:
    """Run the brokers as fake servers, and yield the address of one."""
    servers: dict[int, FakeKafka] = {}

    def known(_: object) -> Message:
        nodes = tuple(
            metadata.MetadataResponseBroker(node_id=each, host=server.host, port=server.port)
            for each, server in servers.items()
        )
        partitions = tuple(
            metadata.MetadataResponsePartition(
                partition_index=each,
                leader_id=LEADER,
                replica_nodes=tuple(brokers),
                isr_nodes=tuple(brokers),
            )
            for each in brokers[LEADER].replicas
        )
        topic = metadata.MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)
        return metadata.MetadataResponse(brokers=nodes, topics=(topic,))

    with ExitStack() as stack:
        for number, broker in brokers.items():
            answers: dict[type[Message], Answer] = {
                metadata.MetadataRequest: known,
                fetch.FetchRequest: broker.fetch,
                list_offsets.ListOffsetsRequest: broker.offsets,
            }
            servers[number] = stack.enter_context(fake_kafka(answers))
        yield servers[LEADER].address


def verify(brokers: dict[int, Broker], *options: str) -> Result:
    """Run `quorate replica-verification` against the brokers."""
    with serving(brokers) as address:
        arguments = ["replica-verification", "--bootstrap-server", address, *options]
        return CliRunner().invoke(main, arguments)


def lines(result: Result) -> list[str]:
    """Return the lines of the output without times and addresses."""
    return [ADDRESS.sub("ADDRESS", line[25:]) for line in result.stdout.splitlines()]


def each_of(*replicas: Replica) -> dict[int, Broker]:
    """Return one broker for each replica of partition 0."""
    return {number: Broker({0: replica}) for number, replica in enumerate(replicas, LEADER)}


ALL = [batch(0), batch(1), batch(2)]


def test_it_asks_as_who_compares_replicas_from_the_first_offset() -> None:
    brokers = each_of(Replica(ALL), Replica(ALL))
    result = verify(brokers, "--once", "--fetch-size", "77", "--max-wait-ms", "5")
    assert result.exit_code == 0
    asked = brokers[2].fetches[0]
    assert (asked.replica_state.replica_id, asked.max_wait_ms, asked.session_epoch) == (-2, 5, -1)
    (partition,) = asked.topics[0].partitions
    assert (partition.fetch_offset, partition.partition_max_bytes) == (0, 77)
    offsets = [each.topics[0].partitions[0].fetch_offset for each in brokers[2].fetches]
    assert offsets == [0, 1, 2], "a batch takes more than half of what fits"


def test_a_broker_never_waits_as_long_as_we_do() -> None:
    brokers = each_of(Replica(ALL), Replica(ALL))
    assert verify(brokers, "--once", "--timeout", "1", "--max-wait-ms", "9999").exit_code == 0
    assert brokers[2].fetches[0].max_wait_ms == 500


def test_once_from_the_end_has_nothing_to_compare() -> None:
    brokers = each_of(Replica(ALL), Replica([batch(0, b"x")]))
    result = verify(brokers, "--once", "--time", "-1")
    assert (result.exit_code, brokers[2].fetches) == (0, [])


def test_a_time_after_the_last_record_is_the_end() -> None:
    brokers = each_of(Replica(ALL), Replica(ALL))
    assert verify(brokers, "--once", "--time", "5000").exit_code == 0
    assert brokers[2].fetches == []


def test_a_replica_that_does_not_answer() -> None:
    brokers = each_of(Replica(ALL), Replica(ALL, silent=True), Replica(ALL))
    result = verify(brokers, "--once", "--timeout", "0.3")
    assert result.exit_code == 1
    assert lines(result) == [
        "partition t-0 is compared up to offset 0 of 3",
        "partition t-0: replica 2 cannot be compared: ADDRESS: it closed the connection",
        "1 partitions: 0 differ, 1 could not be compared to the end",
    ]


def test_a_replica_that_answers_an_error_and_one_that_is_behind() -> None:
    damaged = Replica(ALL, error=ErrorCode.KAFKA_STORAGE_ERROR)
    brokers = each_of(Replica(ALL), damaged, Replica(ALL[:1]))
    result = verify(brokers, "--once", "--timeout", "0.3")
    assert result.exit_code == 1
    assert lines(result)[1:3] == [
        "partition t-0: replica 2 cannot be compared: KAFKA_STORAGE_ERROR",
        "partition t-0: replica 3 cannot be compared: its high watermark is 1",
    ]


def test_what_is_deleted_meanwhile_is_passed_over() -> None:
    """DeleteRecords or retention deletes records during the comparison: the first Fetch is answered
    with OFFSET_OUT_OF_RANGE."""
    late = Replica(ALL[2:], start=2)
    brokers = each_of(Replica(ALL), late)

    def delete() -> None:
        brokers[1].replicas[0] = late

    brokers[1].after = delete
    result = verify(brokers, "--once")
    assert (result.exit_code, lines(result)[-1]) == (
        0,
        "1 partitions are equal on all of their replicas",
    )


def test_a_partition_that_fitted_into_no_answer_comes_first_the_next_time() -> None:
    brokers = {
        number: Broker({each: Replica(ALL) for each in range(3)}, one_partition=True)
        for number in (1, 2)
    }
    assert verify(brokers, "--once").exit_code == 0
    first = [each.topics[0].partitions[0].partition for each in brokers[1].fetches]
    assert first == [0, 1, 2]


def test_other_offsets_end_it_and_faults_are_lines() -> None:
    other = [batch(0, b"x"), batch(1), batch(5)]
    result = verify(each_of(Replica(ALL), Replica(other, high_watermark=9)), "--time", "-2")
    assert result.exit_code == 1
    started, checksum, offset = lines(result)
    assert started == "verification process is started"
    assert checksum.startswith("partition t-0 has unmatched checksum at offset 0; replica 1's")
    assert offset == "partition t-0: replica 1's offset 2 doesn't match replica 2's offset 5"


def test_the_lag_is_reported_in_intervals() -> None:
    behind = Replica(ALL, high_watermark=1)
    brokers = each_of(Replica(ALL), behind)

    def diverge() -> None:
        if len(brokers[2].fetches) == 3:
            brokers[2].replicas[0] = Replica([batch(0), batch(7)], high_watermark=9)

    brokers[2].after = diverge
    options = ("--time", "-2", "--report-interval-ms", "0")
    told = lines(verify(brokers, *options))
    assert told[1] == "max lag is 2 for partition t-0 at offset 1 among 1 partitions"
    assert told[2] == "partition t-0: replica 2 cannot be compared: its high watermark is 1"
    brokers = each_of(Replica(ALL), Replica([batch(0), batch(7)], high_watermark=9))
    rows = verify(brokers, *options, "--format", "json").stdout.splitlines()
    (fault,) = map(json.loads, rows)
    assert (fault["topic"], fault["partition"], fault["fault"]["kind"]) == ("t", 0, "offset")


def test_no_such_topic() -> None:
    result = verify(each_of(Replica(ALL)), "--topics-include", "nosuch")
    assert (result.exit_code, "No topics found." in result.stderr) == (1, True)
