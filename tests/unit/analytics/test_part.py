"""The part of a moment that filters name: topics, partitions and brokers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum import analytics
from quorate.quorum.analytics.replay.moment import Moment, moment
from quorate.quorum.analytics.replay.moment_json import ALONE, as_json
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import PartitionRecord, TopicRecord
from tests.unit.analytics.logs import (
    A,
    B,
    batches,
    created,
    min_isr,
    register,
    snapshot_of,
    write_segment,
)
from tests.unit.analytics.test_moment import put_snapshot
from tests.unit.metadata.kafka_dump import C1


def one(topic: Uuid, partition: int, *replicas: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic,
        replicas=replicas,
        isr=replicas,
        removing_replicas=(),
        adding_replicas=(),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=(),
    )


SCRIPT = (
    (register(1, 11), register(2, 12), register(3, 13)),
    (TopicRecord(name="a", topic_id=A), one(A, 0, 1, 2), one(A, 1, 2, 3)),
    (TopicRecord(name="b", topic_id=B), one(B, 0, 3)),
    (min_isr("a", "2"), min_isr("b", "1"), min_isr("", "1")),
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_segment(tmp_path, 0, b"".join(batches(SCRIPT)))
    return tmp_path


def shown(at: Moment) -> tuple[list[int], list[tuple[str, int]], list[str]]:
    """Return the brokers, the partitions and the resources with configs."""
    partitions = [(topic.name, number) for topic, number, _ in at.image.all_partitions()]
    return at.image.broker_ids(), partitions, sorted(name for _, name in at.image.configs)


def test_topics_partitions_and_brokers(log: Path) -> None:
    assert shown(analytics.at(log, topics=["a"])) == ([1, 2, 3], [("a", 0), ("a", 1)], ["", "a"])
    assert shown(analytics.at(log, topics=["b"])) == ([3], [("b", 0)], ["", "b"])
    part = analytics.at(log, topics=["a"], partitions=[1])
    assert shown(part) == ([2, 3], [("a", 1)], ["", "a"])
    assert shown(analytics.at(log, brokers=[1])) == ([1], [("a", 0)], ["", "a"])
    both = analytics.at(log, brokers=[3], topics=["a"])
    assert shown(both) == ([3], [("a", 1)], ["", "a"])
    assert shown(analytics.at(log, brokers=[1], topics=["b"])) == ([1], [], [""])
    whole, asked = moment(log), analytics.at(log, topics=["a"])
    assert (asked.offset, asked.leader, asked.voters) == (whole.offset, whole.leader, whole.voters)
    assert analytics.at(log) == whole


def test_a_part_says_the_same_as_the_whole() -> None:
    """Every partition of a real Kafka, and every broker, has the state that the whole shows."""
    whole = moment(C1, offset=300)
    for topic, number, state in whole.image.all_partitions():
        part = analytics.at(C1, offset=300, topics=[topic.name], partitions=[number])
        assert [each for _, _, each in part.image.all_partitions()] == [state]
    for broker in whole.image.broker_ids():
        part = analytics.at(C1, offset=300, brokers=[broker])
        hosted = [each for each in whole.image.all_partitions() if broker in each[2].replicas]
        assert [(topic.name, number, state) for topic, number, state in hosted] == [
            (topic.name, number, state) for topic, number, state in part.image.all_partitions()
        ]
        assert part.image.brokers[broker] == whole.image.brokers[broker]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["history", "at", *map(str, arguments)])


def test_the_command(log: Path) -> None:
    lines = run(log, "--topic", "a", "--partition", "0").stdout.splitlines()
    assert lines[1] == "only topics a, partitions 0"
    assert [line for line in lines if "partition" in line][1:] == [
        "topic a (QUFBQUFBQUFBQUFBQUFBQQ), 1 partitions",
        "  partition 0: leader 1, leader epoch 0, replicas 1,2, isr 1,2",
    ]
    state = json.loads(run(log, "--broker", "1", "--format", "json").stdout)
    assert state == as_json(analytics.at(log, brokers=[1]))
    assert not set(ALONE).intersection(state) and set(ALONE) < set(as_json(moment(log)))
    assert not any(line.startswith("only") for line in run(log).stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--topic", "x"), 1, "there is no topic x at this point of the history"),
        (("--topic", "a", "--partition", "7"), 1, "there is no partition a-7 at this point"),
        (("--broker", "9"), 1, "broker 9 is not registered at this point of the history"),
        (("--partition", "0"), 2, "--partition needs --topic"),
    ],
)
def test_objects_that_do_not_exist(
    log: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    result = run(log, *arguments)
    assert result.exit_code == code and text in result.output, result.output


def test_partitions_without_a_topic_are_refused(log: Path) -> None:
    with pytest.raises(analytics.BadOption, match="only be named with their topic"):
        analytics.at(log, partitions=[0])


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return the log of 5,000 partitions with a snapshot behind them. The log before the snapshot
    is damaged, so a test fails if it is read."""
    topics = [Uuid(number.to_bytes(16, "big")) for number in range(1, 101)]
    script = [
        (TopicRecord(name=f"t{number}", topic_id=topic), *(created(topic, p, 1) for p in range(50)))
        for number, topic in enumerate(topics)
    ]
    made = batches([*SCRIPT[:1], *script])
    path = write_segment(tmp_path, 0, b"".join(made))
    at = moment(tmp_path)
    put_snapshot(tmp_path, at.offset + 1, snapshot_of(at.image), at.epoch)
    data = bytearray(path.read_bytes())
    data[len(made[0]) + 70] ^= 1
    path.write_bytes(data)
    return tmp_path


def test_a_part_of_a_large_cluster_is_read_from_the_nearest_snapshot(large: Path) -> None:
    part = analytics.at(large, topics=["t99"], partitions=[49])
    assert [(topic.name, number) for topic, number, _ in part.image.all_partitions()] == [
        ("t99", 49)
    ]


@pytest.mark.long
def test_a_part_of_a_large_cluster_takes_less_than_a_second(large: Path) -> None:
    used_s = []
    for _ in range(3):
        begin_s = time.process_time()
        analytics.at(large, topics=["t99"], partitions=[49])
        used_s.append(time.process_time() - begin_s)
    assert min(used_s) < 1
