"""compression.type: the leader rewrites batches, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.replication.appends import recompressions
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    assemble,
    batches,
    build_batch,
    read_header,
)
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.compression_frames import expansion
from quorate.quorum.log.batches.recompression import STEP_BYTES, Compression
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import ProducePartitionResult
from quorate.quorum.protocol.hot.produce import ProducePartition
from tests.unit.log.test_recompression import text
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.test_flush_keys import held, let_go

MakeCluster = Callable[..., ReplicaCluster]
WHEN_MS = 1_700_000_000_000
ZSTD = Compression(Codec.ZSTD, 3)


def one_broker(
    make_cluster: MakeCluster, compression: Compression | None = ZSTD, **settings: Any
) -> tuple[ReplicaCluster, Uuid]:
    cluster = make_cluster(brokers=1)
    cluster.partition_settings = replace(
        cluster.partition_settings, compression=compression, **settings
    )
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    return cluster, topic


def made(value: bytes, codec: Codec = Codec.GZIP, **producer: int) -> bytearray:
    return build_batch([Record(0, WHEN_MS, b"k", value)], leader_epoch=0, codec=codec, **producer)


def send(
    cluster: ReplicaCluster, topic: Uuid, *data: bytes | bytearray, acks: int = -1, ms: int = 30_000
) -> list[ProducePartitionResult]:
    """Send batches in one request each. Return the list to which the answers are added."""
    answers: list[ProducePartitionResult] = []
    for each in data:
        append = ProducePartition("", topic, 0, memoryview(each))
        cluster.nodes[1].replicas.append([append], acks, ms, answers.extend)
    return answers


def stored(cluster: ReplicaCluster, topic: Uuid) -> list[tuple[int, int]]:
    """Return (codec, base sequence) of the stored batches."""
    return [
        (header.codec, header.base_sequence)
        for each in cluster.content(1, topic)
        for _, header in batches(each)
    ]


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("target", list(Codec))
def test_the_stored_batch_has_the_codec_of_the_topic(
    make_cluster: MakeCluster, target: Codec, acks: int
) -> None:
    cluster, topic = one_broker(make_cluster, Compression(target))
    answers = send(cluster, topic, *(made(b"x" * 100, codec) for codec in Codec), acks=acks)
    cluster.run(20)
    assert [each.error for each in answers] == [0] * len(Codec)
    assert [each.base_offset for each in answers] == list(range(len(Codec)))
    assert [codec for codec, _ in stored(cluster, topic)] == [target] * len(Codec)
    assert cluster.nodes[1].replicas.recompressions.batches == len(Codec) - 1


def test_the_level_of_the_topic_counts(make_cluster: MakeCluster) -> None:
    sizes = []
    for level in (1, 9):
        cluster, topic = one_broker(make_cluster, Compression(Codec.GZIP, level))
        send(cluster, topic, made(text(50_000), Codec.NONE))
        cluster.run(20)
        sizes.append(len(cluster.content(1, topic)[0]))
    assert sizes[0] > sizes[1]


def test_with_producer_nothing_is_rewritten(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster, None)
    answers = send(cluster, topic, *(made(b"x", codec) for codec in Codec))
    assert [each.error for each in answers] == [0] * len(Codec), "immediately"
    assert [codec for codec, _ in stored(cluster, topic)] == list(Codec)


def test_batches_of_one_producer_keep_their_order(make_cluster: MakeCluster) -> None:
    """Those that have the right codec wait for earlier ones that have not."""
    cluster, topic = one_broker(make_cluster)
    codecs = [Codec.GZIP, Codec.ZSTD, Codec.NONE, Codec.ZSTD, Codec.LZ4, Codec.ZSTD]
    sent = [
        made(b"x" * 100, codec, producer_id=7, producer_epoch=0, base_sequence=number)
        for number, codec in enumerate(codecs)
    ]
    answers = send(cluster, topic, *sent)
    assert answers == []
    cluster.run(20)
    assert [each.error for each in answers] == [0] * len(codecs)
    assert stored(cluster, topic) == [(Codec.ZSTD, number) for number in range(len(codecs))]


def test_a_changed_config_does_not_overtake(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster)

    def sent(number: int) -> bytearray:
        return made(b"x", producer_id=7, producer_epoch=0, base_sequence=number)

    answers = send(cluster, topic, sent(0))
    partition = cluster.hosted(1, topic).partition
    partition.configure(replace(partition.settings, compression=None), 0)
    answers += send(cluster, topic, sent(1))
    cluster.run(20)
    assert stored(cluster, topic) == [(Codec.ZSTD, 0), (Codec.GZIP, 1)]


def test_a_rewritten_batch_that_is_too_large_is_refused(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster, Compression(Codec.NONE), max_message_bytes=1000)
    answers = send(cluster, topic, made(b"x" * 2000))
    cluster.run(20)
    assert [each.error for each in answers] == [ErrorCode.MESSAGE_TOO_LARGE]
    assert stored(cluster, topic) == []


@pytest.mark.parametrize(
    ("codec", "stored_as", "error"),
    [
        (Codec.NONE, None, ErrorCode.RECORD_LIST_TOO_LARGE),
        (Codec.GZIP, Codec.NONE, ErrorCode.RECORD_LIST_TOO_LARGE),
        (Codec.NONE, Codec.GZIP, ErrorCode.NONE),
    ],
)
def test_a_batch_that_is_larger_than_a_segment_is_refused(
    make_cluster: MakeCluster, codec: Codec, stored_as: Codec | None, error: ErrorCode
) -> None:
    """max.message.bytes may exceed segment.bytes. The size that counts is that of the stored
    batch."""
    compression = None if stored_as is None else Compression(stored_as)
    cluster, topic = one_broker(make_cluster, compression, segment_bytes=1000)
    answers = send(cluster, topic, made(b"x" * 2000, codec))
    cluster.run(20)
    assert [each.error for each in answers] == [error]
    assert len(stored(cluster, topic)) == (error is ErrorCode.NONE)


def test_what_cannot_be_decompressed_is_refused_and_the_next_is_not(
    make_cluster: MakeCluster,
) -> None:
    cluster, topic = one_broker(make_cluster)
    content = text(100_000)  # the damage lies behind the part that the event loop checks
    good = made(content)
    payload = bytearray(good[HEADER_BYTES:])
    payload[-20_000:-19_900] = bytes(100)
    damaged = assemble(payload, read_header(good))
    answers = send(cluster, topic, damaged, made(b"x"))
    cluster.run(50)
    assert [each.error for each in answers] == [ErrorCode.INVALID_RECORD, 0]
    assert len(stored(cluster, topic)) == 1


def test_an_unexpected_error_fails_the_request_only(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, topic = one_broker(make_cluster)

    def broken(*_: object) -> Iterator[None]:
        yield
        raise MemoryError

    monkeypatch.setattr(recompressions, "recompress", broken)
    answers = send(cluster, topic, made(b"x"))
    cluster.run(20)
    assert [each.error for each in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "MemoryError" in caplog.text


def test_a_bad_batch_is_refused_before_it_is_decompressed(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster)
    bad = made(b"x")
    bad[-1] ^= 1
    answers = send(cluster, topic, bad)
    cluster.run(20)
    assert [each.error for each in answers] == [ErrorCode.CORRUPT_MESSAGE]
    assert cluster.nodes[1].replicas.recompressions.batches == 0


def test_waiting_batches_are_bounded(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, topic = one_broker(make_cluster)
    monkeypatch.setattr(recompressions, "MAX_WAITING_BYTES", 3000)
    answers = held(cluster, 1)
    waiting = send(cluster, topic, *(made(b"x") for _ in range(3)))
    refused = send(cluster, topic, made(b"x"))
    cluster.run(10)
    assert [each.error for each in refused] == [ErrorCode.REQUEST_TIMED_OUT]
    let_go(answers)
    assert [each.error for each in waiting] == [0] * 3
    rewriting = cluster.nodes[1].replicas.recompressions
    assert (rewriting.waiting_bytes, cluster.hosted(1, topic).recompressing) == (0, 0)


def test_a_request_that_times_out_before_is_not_appended(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster)
    answers = held(cluster, 1)
    waiting = send(cluster, topic, made(b"x"), ms=100)
    cluster.run(300)
    assert [each.error for each in waiting] == [ErrorCode.REQUEST_TIMED_OUT]
    let_go(answers)
    assert stored(cluster, topic) == []


def test_a_leader_that_is_deposed_meanwhile_appends_nothing(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2)
    cluster.partition_settings = replace(cluster.partition_settings, compression=ZSTD)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(20)
    answers = held(cluster, 1)
    waiting = send(cluster, topic, made(b"x"))
    cluster.change(topic, leader=2)
    cluster.spread(1)
    cluster.run(1)
    let_go(answers)
    assert [each.error for each in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert stored(cluster, topic) == []


def test_a_partition_that_is_deleted_meanwhile(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster)
    answers = held(cluster, 1)
    waiting = send(cluster, topic, made(b"x"))
    cluster.delete("t")
    cluster.run(10)
    let_go(answers)
    assert [each.error for each in waiting] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_other_work_of_the_disk_waits_for_one_step(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster, max_message_bytes=1 << 21)
    disk = cluster.nodes[1].disk
    send(cluster, topic, made(text(6 * STEP_BYTES)))
    order: list[str] = []
    disk.submit(lambda: None, lambda _, error: order.append("other work"))
    rewriting = cluster.nodes[1].replicas.recompressions
    while not order:
        cluster.run(0.1)
    assert rewriting.batches == 0, "it takes more steps"
    cluster.run(50)
    assert rewriting.batches == 1
    ((header, data),) = [
        (header, each) for each in cluster.content(1, topic) for _, header in batches(each)
    ]
    assert expansion(header.codec, data[HEADER_BYTES:]).most >= 6 * STEP_BYTES


def test_no_flush_waits_for_a_recompression(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster)
    disk = cluster.nodes[1].disk
    held: list[Callable[[], None]] = []
    disk._long_later = held.append
    answers = send(cluster, topic, made(b"x"))
    flushed: list[str] = []
    disk.submit(lambda: None, lambda _, error: flushed.append("flush"))
    cluster.run(50)
    assert flushed and held and not answers
    while held:
        held.pop(0)()
    cluster.run(50)
    assert [each.error for each in answers] == [0]


def test_a_node_that_stops_answers_nothing_more(make_cluster: MakeCluster) -> None:
    cluster, topic = one_broker(make_cluster)
    answers = held(cluster, 1)
    waiting = send(cluster, topic, made(b"x"))
    cluster.nodes[1].replicas.stop()
    let_go(answers)
    assert waiting == []
