"""A replica that holds something else is found, by our replica-verification and by Kafka's."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from crc32c import crc32c

from quorate.cli.nodes.cluster_dir import NodeEntry
from tests.clients.cluster import ProcessCluster, quorate, run_quorate, running, wait_for
from tests.golden.nodes import KAFKA
from tests.kafka.tools import ended, missing

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]
TOOL_S = 60.0

TOPIC = "compared"
CRC_AT, CRC_FROM = 17, 21


@dataclass(frozen=True)
class Damaged:
    cluster: ProcessCluster
    before: subprocess.CompletedProcess[str]
    """The output before the damage."""
    offset: int
    """The last one of the batch that is another at the follower."""


def verify(cluster: ProcessCluster, *options: str) -> subprocess.CompletedProcess[str]:
    at = ("--bootstrap-server", cluster.bootstrap, "--topics-include", TOPIC)
    return run_quorate("replica-verification", *at, *options, timeout_s=120.0)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    root = tmp_path_factory.mktemp("verified") / "cluster"
    with running(root, "--controllers", "1", "--brokers", "2") as cluster:
        leader, follower = cluster.entry()["brokers"]
        at = ("--bootstrap-server", cluster.bootstrap, "--topic", TOPIC)
        made = run_quorate(
            *("topics", *at, "--create"),
            *("--replica-assignment", ",".join([f"{leader['id']}:{follower['id']}"] * 2)),
        )
        assert made.returncode == 0, made.stderr
        for number in range(3):
            line = f"key\tvalue {number}\n"
            sent = quorate("console-producer", *at, "--property", "parse.key=true")
            assert ended(sent, line).code == 0
        before = verify(cluster, "--once")
        cluster.kill(follower["id"])
        wait_for(lambda: not cluster.is_whole(), "the follower is missed")
        offset = with_another_value(follower)
        cluster.restart(follower["id"])
        # Kafka's tool ends with a NullPointerException when a replica's broker is fenced.
        wait_for(cluster.is_whole, "the follower is back")
        yield Damaged(cluster, before, offset)


def with_another_value(broker: NodeEntry) -> int:
    """In the first record of the partition that has records, in a batch that is whole."""
    (segment,) = (
        each
        for each in Path(broker["log_dir"]).glob(f"{TOPIC}-*/00000000000000000000.log")
        if each.stat().st_size
    )
    content = bytearray(segment.read_bytes())
    end = 12 + int.from_bytes(content[8:12], "big")
    at = content.index(b"value 0", CRC_FROM, end)
    content[at] ^= 1
    content[CRC_AT:CRC_FROM] = crc32c(content[CRC_FROM:end]).to_bytes(4, "big")
    segment.write_bytes(content)
    return int.from_bytes(content[23:27], "big")


def undated(line: str) -> str:
    return re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: ", "", line)


def test_equal_replicas(damaged: Damaged) -> None:
    assert damaged.before.returncode == 0, damaged.before.stderr
    said = [undated(line) for line in damaged.before.stdout.splitlines()]
    assert said == ["2 partitions are equal on all of their replicas"]


def test_a_replica_with_another_value_is_found(damaged: Damaged) -> None:
    done = verify(damaged.cluster, "--once")
    said = [undated(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stderr
    assert mismatch(damaged).fullmatch(said[0])
    assert said[1:] == ["2 partitions: 1 differ, 0 could not be compared to the end"]


def test_json(damaged: Damaged) -> None:
    done = verify(damaged.cluster, "--once", "--format", "json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["equal"]) == (1, False)
    faults = [fault for each in verdict["partitions"] for fault in each["faults"]]
    assert [(each["kind"], each["offset"]) for each in faults] == [("checksum", damaged.offset)]


@pytest.mark.kafka
def test_kafkas_tool_says_the_same(damaged: Damaged) -> None:
    if reason := missing():
        pytest.skip(reason)
    at = ("--broker-list", damaged.cluster.bootstrap, "--topics-include", TOPIC, "--time", "-2")
    theirs = first_line_about(KAFKA.tool("replica-verification", *at))
    ours = first_line_about(quorate("replica-verification", *at))
    assert mismatch(damaged).fullmatch(theirs)
    assert ours == theirs


def mismatch(damaged: Damaged) -> re.Pattern[str]:
    leader, follower = (each["id"] for each in damaged.cluster.entry()["brokers"])
    return re.compile(
        rf"partition {TOPIC}-\d has unmatched checksum at offset {damaged.offset}; "
        rf"replica {leader}'s checksum \d+; replica {follower}'s checksum \d+"
    )


def first_line_about(command: list[str]) -> str:
    """Return what the tool says of a partition. The tool does not end by itself.

    Kafka's tool once fetched for four minutes without a line, so there are two attempts."""
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            limit = threading.Timer(TOOL_S, process.kill)
            limit.start()
            try:
                for line in map(undated, process.stdout):
                    if line.startswith("partition"):
                        return line.rstrip("\n")
            finally:
                limit.cancel()
                process.kill()
    raise AssertionError(f"{command[0]} said nothing about a partition within {TOOL_S} s, twice")
