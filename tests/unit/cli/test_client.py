"""The Kafka client of the command line: versions, frames, retries, keys, records."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.cli.client.consumer import EARLIEST, Consumer
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.options import admin_settings
from quorate.cli.client.producer import Producer, murmur2, partition_of
from quorate.cli.console_consumer import Formatter
from quorate.cli.console_producer import chunks, parse_line
from quorate.quorum.log.batches.batch import build_batch, read_header, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import fetch, init_producer_id, list_offsets, metadata, produce
from quorate.quorum.protocol.wire import Message
from tests.unit.cli.fake_kafka import Answer, FakeKafka, fake_kafka

AdminOf = Callable[..., Admin]


@pytest.fixture
def admin_of() -> Iterator[AdminOf]:
    """Creates an Admin for fake servers. All of them are closed at the end of the test."""
    with ExitStack() as stack:

        def make(*servers: FakeKafka) -> Admin:
            addresses = tuple((server.host, server.port) for server in servers)
            admin = Admin(AdminSettings(servers=addresses, timeout_s=2.0))
            stack.callback(admin.close)
            return admin

        yield make


def no_brokers(_: Any) -> metadata.MetadataResponse:
    """Return a Metadata response without brokers."""
    return metadata.MetadataResponse(brokers=(), topics=())


def test_a_server_that_is_gone_is_passed_over(admin_of: AdminOf) -> None:
    with fake_kafka({}) as gone:
        pass
    with fake_kafka({metadata.MetadataRequest: no_brokers}) as server:
        assert admin_of(gone, server).metadata(()).brokers == ()


def test_a_read_is_sent_again_when_the_connection_breaks(admin_of: AdminOf) -> None:
    answers = iter([None, metadata.MetadataResponse(brokers=(), topics=())])
    with fake_kafka({metadata.MetadataRequest: lambda _: next(answers)}) as server:
        assert admin_of(server).metadata(()).brokers == ()
        assert len(server.requests) == 2


def test_a_server_that_closes_every_connection_is_not_flooded() -> None:
    """As a listener with SASL does, if a command does not log in."""
    with fake_kafka({metadata.MetadataRequest: lambda _: None}) as server:
        admin = Admin(AdminSettings(servers=((server.host, server.port),), timeout_s=0.3))
        with pytest.raises(NotReachable, match="it closed the connection"):
            admin.metadata(())
        assert 2 <= len(server.requests) <= 8


def test_an_api_that_is_not_served_is_refused(admin_of: AdminOf) -> None:
    with fake_kafka({}) as server, pytest.raises(Refused, match="does not serve Metadata"):
        admin_of(server).metadata(())


def test_ctrl_c_leaves_no_answer_behind_for_the_next_request(
    admin_of: AdminOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted console consumer once took the response to its Fetch for that to its
    LeaveGroup."""
    receive, interrupted = Connection._receive, [KeyboardInterrupt()]

    def interruptible(self: Connection) -> bytes:
        if interrupted:
            raise interrupted.pop()
        return receive(self)

    with fake_kafka({metadata.MetadataRequest: no_brokers}) as server:
        admin = admin_of(server)
        assert admin.metadata(()).brokers == ()
        monkeypatch.setattr(Connection, "_receive", interruptible)
        with pytest.raises(KeyboardInterrupt):
            admin.metadata(())
        assert admin.metadata(()).brokers == ()


def two_brokers(first: FakeKafka, second: FakeKafka) -> metadata.MetadataResponse:
    """Return a Metadata response with two brokers, 1 and 2."""
    return metadata.MetadataResponse(
        brokers=tuple(
            metadata.MetadataResponseBroker(node_id=number, host=each.host, port=each.port)
            for number, each in enumerate((first, second), 1)
        ),
        topics=(),
    )


def test_several_brokers_are_asked_at_once(
    admin_of: AdminOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first broker answers only after the second one has its request. After Ctrl-C no response
    of either is left."""
    asked = threading.Event()

    def waits(_: object) -> Message:
        assert asked.wait(10)
        return fetch.FetchResponse(error_code=1, responses=())

    def answers(_: object) -> Message:
        asked.set()
        return fetch.FetchResponse(error_code=2, responses=())

    with fake_kafka({fetch.FetchRequest: answers}) as second:
        with fake_kafka({fetch.FetchRequest: waits}) as first:
            known = {metadata.MetadataRequest.API_KEY: lambda _: two_brokers(first, second)}
            first._answers.update(known)
            admin = admin_of(first)
            request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=())
            requests = dict.fromkeys((1, 2), request)

            def codes() -> list[object]:
                found = admin.ask_nodes(requests, fetch.FetchResponse)
                return [getattr(found[each], "error_code", found[each]) for each in (1, 2)]

            assert codes() == [1, 2]
            with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
                patched.setattr(Connection, "_receive", interrupted)
                codes()
            assert codes() == [1, 2]
        assert isinstance(codes()[0], ConnectionLost), "the first is gone"
        assert codes()[1] == 2


def interrupted(_: Connection) -> bytes:
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("frame", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\x02ab"])
def test_what_is_no_kafka_frame_ends_the_connection(frame: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(frame)

        thread = threading.Thread(target=answer)
        thread.start()
        host, port = listener.getsockname()[:2]
        connection = Connection(host, port, timeout_s=2, client_id="t")
        with pytest.raises(ConnectionLost):
            connection.call(metadata.MetadataRequest(topics=()), metadata.MetadataResponse, 2)
        thread.join()
        assert connection.closed


def test_a_deadline_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()[:2]
        admin = Admin(AdminSettings(servers=((host, port),), timeout_s=0.05))
        with pytest.raises(NotReachable):
            admin.metadata(())


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_kafkas_clients_do(key: bytes, hashed: int) -> None:
    """The values are those of Kafka's own tests."""
    assert murmur2(key) == hashed % 2**32
    assert partition_of(key, 7) == (hashed & 0x7FFFFFFF) % 7


class Topic:
    """A topic with one partition, which the fake server itself leads and stores as a list of
    batches."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.errors: list[ErrorCode] = []
        self.leader = 4
        self.start = 0
        self.server: FakeKafka | None = None

    def answers(self) -> dict[Any, Answer]:
        """Return the answers of the server."""
        return {
            metadata.MetadataRequest: self.described,
            init_producer_id.InitProducerIdRequest: lambda _: (
                init_producer_id.InitProducerIdResponse(producer_id=9, producer_epoch=0)
            ),
            produce.ProduceRequest: self.produced,
            list_offsets.ListOffsetsRequest: self.listed,
            fetch.FetchRequest: self.fetched,
        }

    def described(self, request: Any) -> metadata.MetadataResponse:
        """Answer Metadata."""
        assert self.server is not None
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=self.leader, replica_nodes=(4,), isr_nodes=(4,)
        )
        broker = metadata.MetadataResponseBroker(
            node_id=4, host=self.server.host, port=self.server.port
        )
        topic = metadata.MetadataResponseTopic(name="t", partitions=(partition,))
        return metadata.MetadataResponse(
            brokers=(broker,), topics=(topic,) if request.topics != () else ()
        )

    def produced(self, request: Any) -> produce.ProduceResponse:
        """Answer Produce with the next error, or store the batch."""
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        code = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if code == ErrorCode.NONE:
            self.batches.append(bytes(data.records))
        partition = produce.PartitionProduceResponse(index=0, error_code=code, base_offset=0)
        return produce.ProduceResponse(
            responses=(produce.TopicProduceResponse(name="t", partition_responses=(partition,)),)
        )

    def listed(self, request: Any) -> list_offsets.ListOffsetsResponse:
        """Answer ListOffsets with the first offset."""
        found = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=self.start)
        topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=(found,))
        return list_offsets.ListOffsetsResponse(topics=(topic,))

    def fetched(self, request: Any) -> fetch.FetchResponse:
        """Answer Fetch with all batches and a part of one more."""
        offset = request.topics[0].partitions[0].fetch_offset
        if offset < self.start:
            data = fetch.PartitionData(
                partition_index=0,
                error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
                high_watermark=-1,
                records=b"",
            )
            answered = fetch.FetchableTopicResponse(topic="t", partitions=(data,))
            return fetch.FetchResponse(responses=(answered,))
        content = b"".join(self.batches)
        # A broker returns whole batches, with earlier records, and may cut off the last one.
        data = fetch.PartitionData(
            partition_index=0,
            high_watermark=9,
            records=content + content[:20] if offset < 4 else b"",
        )
        return fetch.FetchResponse(
            responses=(fetch.FetchableTopicResponse(topic="t", partitions=(data,)),)
        )


def test_a_producer_retries_with_the_same_sequence(admin_of: AdminOf) -> None:
    topic = Topic()
    topic.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    with fake_kafka(topic.answers()) as topic.server:
        producer = Producer(admin_of(topic.server), "t")
        producer.send([(None, b"1"), (b"k", b"2")])
        producer.send([(None, b"3")])
        sent = [
            bytes(each.topic_data[0].partition_data[0].records or b"")
            for each in topic.server.requests
            if isinstance(each, produce.ProduceRequest)
        ]
    assert len(sent) == 3
    assert sent[0] == sent[1]
    assert [int.from_bytes(each[53:57], "big") for each in sent] == [0, 0, 2]  # base sequences
    assert all(int.from_bytes(each[43:51], "big") == 9 for each in sent)  # producer id


def test_a_producer_gives_up_on_an_error_that_stays(admin_of: AdminOf) -> None:
    topic = Topic()
    topic.errors = [ErrorCode.MESSAGE_TOO_LARGE]
    with fake_kafka(topic.answers()) as topic.server:
        producer = Producer(admin_of(topic.server), "t")
        with pytest.raises(Refused, match="topic t, partition 0: MESSAGE_TOO_LARGE"):
            producer.send([(None, b"1")])


def test_a_producer_splits_a_batch_that_is_too_large(admin_of: AdminOf) -> None:
    """As Kafka's producer does. Otherwise the lines of one read never fit into a topic with a small
    max.message.bytes."""
    topic = Topic()
    topic.errors = [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE]
    with fake_kafka(topic.answers()) as topic.server:
        producer = Producer(admin_of(topic.server), "t")
        producer.send([(None, b"%d" % number) for number in range(5)])
    headers = [read_header(each) for each in topic.batches]
    assert [(each.base_sequence, each.record_count) for each in headers] == [(0, 2), (2, 1), (3, 2)]
    values = [r.value for each in topic.batches for r in records_of(each, 0, read_header(each))]
    assert b"".join(bytes(each or b"") for each in values) == b"01234"


def test_a_partition_without_a_leader_is_named() -> None:
    topic = Topic()
    topic.leader = -1
    with fake_kafka(topic.answers()) as topic.server:
        servers = ((topic.server.host, topic.server.port),)
        admin = Admin(AdminSettings(servers=servers, timeout_s=0.2))
        producer = Producer(admin, "t")
        why = "topic t, partition 0: LEADER_NOT_AVAILABLE: it has no leader. `quorate status` says"
        with pytest.raises(NotReachable, match=why):
            producer.send([(None, b"1")])
        admin.close()


def test_a_consumer_skips_what_lies_before_its_position_and_cut_off_tails(
    admin_of: AdminOf,
) -> None:
    topic = Topic()
    records = [Record(n, 1000 + n, b"k%d" % n, b"v%d" % n) for n in range(4)]
    topic.batches = [bytes(build_batch(records, leader_epoch=2))]
    with fake_kafka(topic.answers()) as topic.server:
        consumer = Consumer(admin_of(topic.server), "t")
        consumer.seek(EARLIEST)
        assert [bytes(each.record.value or b"") for each in consumer.poll()] == [
            b"v0",
            b"v1",
            b"v2",
            b"v3",
        ]
        assert list(consumer.poll()) == []
        consumer.seek(2)
        assert [each.record.offset for each in consumer.poll()] == [2, 3]


def test_records_as_the_console_consumer_prints_them(admin_of: AdminOf) -> None:
    topic = Topic()
    record = Record(0, 1000, b"k", None, (("h", b"1"), ("i", None)))
    topic.batches = [bytes(build_batch([record], leader_epoch=2))]
    with fake_kafka(topic.answers()) as topic.server:
        consumer = Consumer(admin_of(topic.server), "t")
        consumer.seek(0)
        (consumed,) = consumer.poll()
    assert Formatter({})(consumed) == b"null\n"
    everything = {f"print.{name}": "true" for name in ("timestamp", "partition", "offset", "key")}
    assert Formatter(everything)(consumed) == b"CreateTime:1000\tPartition:0\tOffset:0\tk\tnull\n"
    more = {"print.headers": "true", "print.epoch": "true", "print.value": "false"}
    assert Formatter({**more, "key.separator": "|"})(consumed) == b"Epoch:2|h:1,i:null\n"


def test_lines_become_records() -> None:
    assert parse_line(b"a\tb\tc", b"\t") == (b"a", b"b\tc")
    assert parse_line(b"a\tb", None) == (None, b"a\tb")
    with pytest.raises(Refused, match="No key separator"):
        parse_line(b"ab", b"\t")


def test_lines_are_whole_whatever_the_reads() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = chunks(ours.fileno())
        theirs.sendall(b"one\r\ntw")
        assert next(reader) == [b"one"]
        theirs.sendall(b"o\nthree")
        assert next(reader) == [b"two"]
        theirs.shutdown(socket.SHUT_WR)
        assert list(reader) == [[b"three"]]


def test_settings_from_a_command_config(tmp_path: Any) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1,b:2\ndefault.api.timeout.ms=1500\nclient.id=me\n")
    settings = admin_settings(None, None, str(file), None)
    assert settings.servers == (("a", 1), ("b", 2))
    assert (settings.timeout_s, settings.client_id) == (1.5, "me")
    file.write_text("security.protocol=SASL\n")
    with pytest.raises(Refused, match=r"security\.protocol: value 'SASL' must be one of PLAINTEXT"):
        admin_settings("a:1", None, str(file), None)
