"""A compacted topic on real processes and disks: it shrinks, and real clients read what is left."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.clients.cluster import ProcessCluster, run_quorate, running, wait_for
from tests.clients.librdkafka import ANSWER_TIMEOUT_S, admin, create_topic, producer, read_all

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KEYS = 50
RECORDS = 3_000
VALUE = random.Random(1).randbytes(1_000)
SETTINGS = (
    "log.cleaner.backoff.ms=200",
    "log.flush.offset.checkpoint.interval.ms=500",
    "log.segment.delete.delay.ms=500",
)


def write(cluster: ProcessCluster, name: str, first: int) -> None:
    client = producer(cluster.bootstrap, enable_idempotence=True, compression_type="lz4")
    for number in range(first, first + RECORDS):
        client.produce(name, b"%d|" % number + VALUE, b"%d" % (number % KEYS))
        if number % 50 == 0:
            client.flush(ANSWER_TIMEOUT_S)
    assert client.flush(ANSWER_TIMEOUT_S) == 0


def sizes(cluster: ProcessCluster, name: str) -> list[int]:
    """Return the bytes of the data files of each replica."""
    directories = cluster.directory.root.glob(f"nodes/*/data/{name}-0")
    return [sum(each.stat().st_size for each in found.glob("*.log")) for found in directories]


def values(cluster: ProcessCluster, name: str) -> dict[bytes | None, int]:
    latest = {}
    for message in read_all(cluster.bootstrap, [(name, 0)]):
        value, key = message.value(), message.key()
        assert isinstance(value, bytes) and (key is None or isinstance(key, bytes))
        latest[key] = int(value.partition(b"|")[0])
    return latest


@pytest.mark.long
def test_a_compacted_topic_shrinks_and_its_latest_values_stay(tmp_path: Path) -> None:
    options = [word for setting in SETTINGS for word in ("--override", setting)]
    with running(tmp_path / "cluster", *options) as cluster:
        client = admin(cluster.bootstrap)
        config = {
            "cleanup.policy": "compact",
            "segment.bytes": str(1 << 20),
            "min.cleanable.dirty.ratio": "0.01",
            "file.delete.delay.ms": "100",
        }
        create_topic(client, "kept", config=config)
        expected = {}
        for first in (0, RECORDS, 2 * RECORDS):
            write(cluster, "kept", first)
            expected = {b"%d" % (n % KEYS): n for n in range(first, first + RECORDS)}
            wait_for(lambda: max(sizes(cluster, "kept")) < 5 << 19, "all replicas are compacted")
            assert values(cluster, "kept") == expected
        broker = cluster.entry()["brokers"][0]["id"]
        cluster.kill(broker)
        cluster.restart(broker)
        wait_for(cluster.is_whole, "every ISR is whole")
        assert values(cluster, "kept") == expected
        directories = sorted(cluster.directory.root.glob("nodes/*/data/kept-0"))
        assert len(directories) == 3
        refused = Counter[str]()
        sender = producer(cluster.bootstrap)
        sender.produce("kept", b"v", on_delivery=lambda error, _: refused.update([str(error)]))
        assert sender.flush(ANSWER_TIMEOUT_S) == 0
        assert "INVALID_RECORD" in str(refused) or "validate record" in str(refused), refused
    for directory in directories:
        verified = run_quorate("storage", "verify", str(directory.parent))
        assert verified.returncode == 0, verified.stdout
