"""Consumer groups of real clients: three members, one of them killed, the coordinator killed.

Members run in processes of their own (`group_member.py`), so that killing one is a real death."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.cluster import ProcessCluster, run_quorate, wait_for
from tests.clients.group_member import CLIENTS

pytestmark = pytest.mark.clients

ROOT = Path(__file__).parents[2]
MEMBER_MODULE = "tests.clients.group_member"
PARTITIONS = 6
SETTLE_TIMEOUT_S = 40.0


class MemberProcess:
    def __init__(self, client: str, bootstrap: str, group: str, topic: str, output: Path) -> None:
        self._output = output
        with open(output, "wb") as out, open(output.with_suffix(".err"), "wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MEMBER_MODULE, client, bootstrap, group, topic],
                stdout=out,
                stderr=err,
                cwd=ROOT,
            )

    def lines(self) -> list[list[str]]:
        whole = self._output.read_text().rpartition("\n")[0]
        return [line.split() for line in whole.splitlines()]

    def assigned(self) -> set[int]:
        last = [words[1] for words in self.lines() if words[0] == "assigned"]
        return set() if not last or last[-1] == "-" else set(map(int, last[-1].split(",")))

    def records(self) -> set[tuple[int, int]]:
        return {(int(w[1]), int(w[2])) for w in self.lines() if w[0] == "record"}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def error(self) -> str:
        return self._output.with_suffix(".err").read_text()[-2000:]


@contextmanager
def members(
    client: str, bootstrap: str, group: str, topic: str, directory: Path
) -> Iterator[list[MemberProcess]]:
    started = []
    try:
        for index in range(3):
            output = directory / f"{client}-{index}.out"
            started.append(MemberProcess(client, bootstrap, group, topic, output))
        yield started
    finally:
        for each in started:
            each.kill()


def shared_out(alive: list[MemberProcess]) -> bool:
    """Every partition belongs to exactly one, and everybody has some."""
    parts = [each.assigned() for each in alive]
    return all(parts) and sorted(p for part in parts for p in part) == list(range(PARTITIONS))


def settled(alive: list[MemberProcess]) -> None:
    try:
        wait_for(lambda: shared_out(alive), "every partition has a member", SETTLE_TIMEOUT_S)
    except AssertionError as late:
        for each in alive:
            late.add_note(f"assigned {sorted(each.assigned())}; {each.error()}")
        raise


def create(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(30)


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def coordinator_of(cluster: ProcessCluster, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(30)
    return int(described.coordinator.id)


def committed(bootstrap: str, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        wanted = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        return [each.offset for each in consumer.committed(wanted, timeout=30)]
    finally:
        consumer.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_three_members_share_and_two_take_over_from_one_that_is_killed(
    client: str, cluster: ProcessCluster, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic, bootstrap = new_topic(), cluster.bootstrap
    create(bootstrap, topic)
    produce(bootstrap, topic, 60)
    with members(client, bootstrap, f"of-{topic}", topic, tmp_path) as three:
        settled(three)
        three[0].kill()
        settled(three[1:])
        produce(bootstrap, topic, 60)
        everything = {(p, offset) for p in range(PARTITIONS) for offset in range(20)}
        wait_for(
            lambda: set.union(*(each.records() for each in three)) == everything,
            "every record was consumed by somebody",
        )


def test_group_goes_on_when_its_coordinator_is_killed(
    own_cluster: ProcessCluster, tmp_path: Path
) -> None:
    topic, bootstrap = "going-on", own_cluster.bootstrap
    create(bootstrap, topic)
    with members("confluent", bootstrap, "group", topic, tmp_path) as three:
        settled(three)
        own_cluster.kill(coordinator_of(own_cluster, "group"))
        produce(bootstrap, topic, 60)
        everything = {(p, offset) for p in range(PARTITIONS) for offset in range(10)}
        wait_for(
            lambda: set.union(*(each.records() for each in three)) == everything,
            "every record was consumed by somebody",
        )
        settled(three)


def is_committed(bootstrap: str, wanted: ConsumerGroupTopicPartitions) -> bool:
    """False when the coordinator has just moved. A client of its own each time: librdkafka's admin
    client remembers a group's coordinator even when that one says it is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    altered = admin.alter_consumer_group_offsets([wanted])[wanted.group_id].result(30)
    errors = [each.error for each in altered.topic_partitions if each.error is not None]
    assert all(error.retriable() or error.code() == KafkaError.NOT_COORDINATOR for error in errors)
    return not errors


def test_offsets_survive_the_death_of_the_coordinator_between_commit_and_fetch(
    own_cluster: ProcessCluster,
) -> None:
    topic, bootstrap = "survives", own_cluster.bootstrap
    create(bootstrap, topic)
    for number in range(3):
        offsets = [TopicPartition(topic, each, 100 * number + each) for each in range(PARTITIONS)]
        wanted = ConsumerGroupTopicPartitions("keeper", offsets)
        wait_for(partial(is_committed, bootstrap, wanted), "the offsets are committed")
        coordinator = coordinator_of(own_cluster, "keeper")
        own_cluster.kill(coordinator)
        expected = [100 * number + each for each in range(PARTITIONS)]
        assert committed(own_cluster.bootstrap, "keeper", topic) == expected
        own_cluster.restart(coordinator)


def test_a_group_is_listed_described_emptied_and_deleted(
    cluster: ProcessCluster, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic, bootstrap = new_topic(), cluster.bootstrap
    group = f"of-{topic}"
    create(bootstrap, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with members("confluent", bootstrap, group, topic, tmp_path) as three:
        settled(three)
        listed = admin.list_consumer_groups().result(30)
        assert group in [each.group_id for each in listed.valid]
        described = admin.describe_consumer_groups([group])[group].result(30)
        assert described.state.name == "STABLE"
        assert described.partition_assignor == "cooperative-sticky"
        spread = [len(each.assignment.topic_partitions) for each in described.members]
        assert spread == [2, 2, 2]
        with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([group])[group].result(30)

    def empty() -> bool:
        state = admin.describe_consumer_groups([group])[group].result(30).state
        return bool(state.name == "EMPTY")

    wait_for(empty, "the sessions of the dead members expire")
    admin.delete_consumer_groups([group])[group].result(30)
    assert group not in [each.group_id for each in admin.list_consumer_groups().result(30).valid]


def test_nobody_but_its_coordinator_writes_to_the_offsets_topic(cluster: ProcessCluster) -> None:
    bootstrap = cluster.bootstrap
    coordinator_of(cluster, "any")  # creates it
    errors = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(
        "__consumer_offsets",
        b"v",
        b"k",
        partition=0,
        callback=lambda error, _: errors.append(error),
    )
    assert producer.flush(30) == 0
    assert [each and each.name() for each in errors] == ["TOPIC_EXCEPTION"]


def test_the_command_line_lists_describes_resets_and_deletes(
    cluster: ProcessCluster, new_topic: Callable[[], str]
) -> None:
    topic, bootstrap = new_topic(), cluster.bootstrap
    group = f"of-{topic}"
    create(bootstrap, topic)
    produce(bootstrap, topic, 60)

    def tool(*options: str) -> str:
        done = run_quorate("consumer-groups", "--bootstrap-server", bootstrap, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    tool(*reset, "--to-offset", "4", "--dry-run")
    assert group not in tool("--list").split()
    tool(*reset, "--to-offset", "4", "--execute")
    assert committed(bootstrap, group, topic) == [4] * PARTITIONS
    assert group in tool("--list").split()
    rows = tool("--describe", "--group", group).splitlines()[2:]
    assert [row.split()[:6] for row in rows] == [
        [group, topic, str(each), "4", "10", "6"] for each in range(PARTITIONS)
    ]
    tool(*reset, "--to-latest", "--execute")
    tool(
        "--reset-offsets", "--group", group, "--topic", f"{topic}:1,2", "--to-earliest", "--execute"
    )
    assert committed(bootstrap, group, topic) == [10, 0, 0, 10, 10, 10]
    tool("--delete", "--group", group)
    assert group not in tool("--list").split()


def test_the_console_consumer_goes_on_where_its_group_stopped(
    cluster: ProcessCluster, new_topic: Callable[[], str]
) -> None:
    topic, bootstrap = new_topic(), cluster.bootstrap
    create(bootstrap, topic)
    produce(bootstrap, topic, 60)
    options = ("--topic", topic, "--group", f"of-{topic}", "--from-beginning")

    def consumed(count: int) -> list[int]:
        done = run_quorate(
            *("console-consumer", "--bootstrap-server", bootstrap, *options),
            *("--max-messages", str(count), "--timeout-ms", "5000"),
        )
        assert done.returncode == 0, done.stderr
        return list(map(int, done.stdout.split()))

    first, second = consumed(25), consumed(35)
    assert len(first) == 25
    assert sorted(first + second) == list(range(60))
