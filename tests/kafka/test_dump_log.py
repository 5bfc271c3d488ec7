"""kafka-dump-log reads our files to the last byte, and says what our dump-log says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.clients.cluster import ProcessCluster, run_quorate, running, wait_for
from tests.clients.librdkafka import ANSWER_TIMEOUT_S, admin, create_topic, producer
from tests.kafka.tools import kafka, missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SEGMENT = "00000000000000000000"
RECORDS = 400
RECOMPRESSED = {"uncompressed": "NONE", "snappy": "SNAPPY", "lz4": "LZ4", "zstd": "ZSTD"}
"""The values of compression.type, and Kafka's names of the codecs in its dumps."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
METADATA = "__cluster_metadata-0"
# What Kafka's records do not have; its tools skip it as an unknown tag.
CAUSE = re.compile(r',"cause":"[a-z-]+"|(?<=\{)"cause":"[a-z-]+",?')


@dataclass(frozen=True)
class Stopped:
    """A cluster that had a life, and its files."""

    cluster: ProcessCluster

    def directories(self, name: str) -> list[Path]:
        found = sorted(self.cluster.directory.root.glob(f"nodes/*/data/{name}"))
        assert found
        return found


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    """A controller and a broker died in it, topics came and went, all codecs were used."""
    if reason := missing():
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("dump") / "cluster") as cluster:
        client = admin(cluster.bootstrap)
        create_topic(client, "kept", 2, config={"index.interval.bytes": "1000"})
        create_topic(client, "deleted")
        for codec in CODECS:
            sender = producer(cluster.bootstrap, compression_type=codec, enable_idempotence=True)
            for number in range(RECORDS):
                sender.produce("kept", b"%d" % number * 20, b"key", partition=0)
                if number % 20 == 19:
                    sender.flush(ANSWER_TIMEOUT_S)
            assert sender.flush(ANSWER_TIMEOUT_S) == 0
        for codec in RECOMPRESSED:
            config = {"compression.type": codec, "preallocate": "true", "segment.bytes": "2000000"}
            create_topic(client, f"as-{codec}", config=config)
            for sent in ("none", "gzip"):
                sender = producer(cluster.bootstrap, compression_type=sent, linger_ms=5)
                for number in range(RECORDS):
                    sender.produce(f"as-{codec}", b"%d" % number * 20, b"key")
                assert sender.flush(ANSWER_TIMEOUT_S) == 0
        client.delete_topics(["deleted"])["deleted"].result(ANSWER_TIMEOUT_S)
        for group in (cluster.entry()["brokers"], cluster.entry()["controllers"]):
            cluster.kill(group[0]["id"])
            cluster.restart(group[0]["id"])
            wait_for(lambda: in_sync(client), "every ISR is whole")
        create_topic(client, "after")
    yield Stopped(cluster)


def in_sync(client: AdminClient) -> bool:
    described = client.list_topics(timeout=ANSWER_TIMEOUT_S)
    partitions = [each for topic in described.topics.values() for each in topic.partitions.values()]
    return len(described.brokers) == 3 and all(len(each.isrs) == 3 for each in partitions)


def dumped(*arguments: str) -> list[str]:
    """Kafka's tool; it complains in lines, its exit code is 0."""
    done = kafka("dump-log", *arguments)
    assert (done.code, done.errors) == (0, "")
    complaint = re.compile(
        r"(?i)could not decode|found invalid|mismatch|isvalid: false|out of order"
    )
    assert [line for line in done.lines if complaint.search(line)] == []
    return done.lines


def ours(*arguments: str) -> list[str]:
    done = run_quorate("dump-log", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def end_of(lines: list[str]) -> int:
    """Return the end of the last batch in bytes."""
    batch = [line for line in lines if line.startswith("baseOffset")][-1]
    found = re.search(r" position: (\d+) .* size: (\d+) ", batch)
    assert found
    return int(found[1]) + int(found[2])


def test_every_metadata_log(stopped: Stopped) -> None:
    """Of voters and observers, control records too. Ours tells the cause besides."""
    for directory in stopped.directories(METADATA):
        segment = directory / f"{SEGMENT}.log"
        arguments = ("--cluster-metadata-decoder", "--files", str(segment))
        theirs = dumped(*arguments)
        text = "\n".join(ours(*arguments))
        assert CAUSE.sub("", text).splitlines() == theirs
        assert end_of(theirs) == segment.stat().st_size
        assert "LeaderChange" in text and "PARTITION_CHANGE_RECORD" in text
        assert '"cause":"session-' in text or '"cause":"connection-' in text, "why it was fenced"


def test_every_partition_log(stopped: Stopped) -> None:
    replicas = stopped.directories("kept-0")
    assert len(replicas) == 3
    dumps = []
    for directory in replicas:
        segment = directory / f"{SEGMENT}.log"
        arguments = ("--deep-iteration", "--print-data-log", "--files", str(segment))
        theirs = dumped(*arguments)
        assert ours(*arguments) == theirs
        assert end_of(theirs) == segment.stat().st_size
        assert sum(line.startswith("| offset") for line in theirs) == RECORDS * len(CODECS)
        assert set(re.findall(r"compresscodec: (\w+)", "\n".join(theirs))) == set(CODECS)
        dumps.append(theirs[1:])
    assert dumps[0] == dumps[1] == dumps[2], "replicas are equal byte for byte"


@pytest.mark.parametrize("codec", RECOMPRESSED)
def test_batches_that_the_leader_recompressed(stopped: Stopped, codec: str) -> None:
    """The stop has cut the preallocated zeros off, at which Kafka's tool would fail."""
    for directory in stopped.directories(f"as-{codec}-0"):
        segment = directory / f"{SEGMENT}.log"
        arguments = ("--deep-iteration", "--print-data-log", "--files", str(segment))
        theirs = dumped(*arguments)
        assert sum(line.startswith("| offset") for line in theirs) == 2 * RECORDS
        assert end_of(theirs) == segment.stat().st_size
        codecs = set(re.findall(r"compresscodec: (\w+)", "\n".join(theirs)))
        assert {each.upper() for each in codecs} == {RECOMPRESSED[codec]}


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_indexes(stopped: Stopped, kind: str, tmp_path: Path) -> None:
    """Read against a copy: Kafka's tool opens indexes for writing."""
    for directory in stopped.directories("kept-0"):
        copy = Path(shutil.copytree(directory, tmp_path / directory.parts[-3] / directory.name))
        file = str(copy / f"{SEGMENT}.{kind}")
        theirs = dumped("--files", file)
        assert len(theirs) > 5, "entries"
        assert ours("--files", file) == theirs
        dumped("--index-sanity-check", "--files", file)
        dumped("--verify-index-only", "--files", file)


def test_bootstrap_snapshots(stopped: Stopped) -> None:
    for file in stopped.directories("bootstrap.checkpoint")[:1]:
        arguments = ("--cluster-metadata-decoder", "--files", str(file))
        theirs = dumped(*arguments)
        assert any('"FEATURE_LEVEL_RECORD"' in line for line in theirs)
        assert CAUSE.sub("", "\n".join(ours(*arguments))).splitlines() == theirs


def test_producer_snapshots(stopped: Stopped) -> None:
    """Of replicas whose producers were known when they stopped; the others scan their log."""
    files = [f for d in stopped.directories("kept-0") for f in sorted(d.glob("*.snapshot"))]
    assert files
    for file in files:
        theirs = dumped("--files", str(file))
        last = int(file.name.partition(".")[0]) - 1
        assert any(f"lastOffset: {last} " in line for line in theirs)


SHELL_TRIES = 5
NO_SUCH_FILE = "No such file or directory"


def shell(log: Path, *command: str) -> list[str]:
    """Return the lines of Kafka's metadata shell.

    On a busy machine the shell answers before it has read the file, with status 0 and either
    nothing (docs/differences.md) or "No such file", so it is asked again."""
    lines: list[str] = []
    for _ in range(SHELL_TRIES):
        done = kafka("metadata-shell", "--snapshot", str(log), *command)
        assert (done.code, done.errors) == (0, "")
        lines = list(done.lines)
        if any(lines) and not any(NO_SUCH_FILE in each for each in lines):
            break
    return lines


def test_the_metadata_shell(stopped: Stopped) -> None:
    """Apache Kafka replays our metadata log into its own image."""
    logs = [directory / f"{SEGMENT}.log" for directory in stopped.directories(METADATA)]
    log = max(logs, key=lambda file: file.stat().st_size)
    names = shell(log, "ls", "/image/topics/byName")
    made = [f"as-{codec}" for codec in sorted(RECOMPRESSED)]
    assert sorted(" ".join(names).split()) == ["after", *made, "kept"]
    data = shell(log, "cat", "/image/topics/byName/kept/0")
    assert "isr" in " ".join(data), data
