"""Kafka's dump-log reads the segments and indexes that the log cleaner writes."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from tests.kafka.test_dump_log import ours
from tests.kafka.tools import kafka, missing
from tests.unit.compaction.histories import DELETE_RETENTION_MS, PATH, Replica

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing() or "the tools are here"),
]


def exported(replica: Replica, directory: Path) -> Path:
    """Write the files of the log, which is closed first, into a real directory."""
    replica.log.close()
    directory.mkdir()
    for name in replica.disk.list(PATH):
        (directory / name).write_bytes(replica.disk.content(f"{PATH}/{name}"))
    return directory


def cleaned(codec: Codec) -> Replica:
    """Return a log with delete horizons, passed ones, and batches without records."""
    replica = Replica(7, map_keys=100)
    for _ in range(3):
        producer = build_batch(
            [Record(replica.log.end_offset, replica.wall_ms, b"k1", b"first")],
            leader_epoch=0,
            producer_id=4000,
            producer_epoch=1,
            base_sequence=replica.cleanings,
        )
        replica.last_batches = {4000: replica.log.end_offset}
        replica.log.append(producer, wall_ms=replica.wall_ms)
        for _ in range(40):
            replica.append(3, codec=codec)
        replica.high_watermark = replica.log.end_offset
        replica.flush()
        assert replica.clean() is not None
        replica.wall_ms += DELETE_RETENTION_MS
    return replica


# Kafka's tool says these of its own compacted logs, too. Offsets are missing in them. A batch
# without records keeps its largest timestamp, which the tool looks for in the records.
EXPECTED = re.compile(
    r"Non-consecutive offsets in .*|  \d+ is followed by \d+|"
    r"Found timestamp mismatch in .*|  Index timestamp: \d+, log timestamp: -1"
)
COMPLAINT = re.compile(r"(?i)could not decode|found invalid|isvalid: false|out of order")


def dumped(*arguments: str) -> list[str]:
    done = kafka("dump-log", *arguments)
    assert done.code == 0
    assert [line for line in done.errors.splitlines() if not EXPECTED.fullmatch(line)] == []
    assert [line for line in done.lines if COMPLAINT.search(line)] == []
    return done.lines


def files(directory: Path, suffix: str) -> str:
    found = sorted(each for each in directory.glob(f"*{suffix}") if each.stat().st_size)
    assert found
    return ",".join(str(each) for each in found)


@pytest.mark.parametrize("codec", list(Codec))
def test_kafka_dumps_a_compacted_log(codec: Codec, tmp_path: Path) -> None:
    directory = exported(cleaned(codec), tmp_path / "t-0")
    arguments = ("--deep-iteration", "--print-data-log", "--files", files(directory, ".log"))
    theirs = dumped(*arguments)
    assert ours(*arguments) == theirs
    for kind in (".index", ".timeindex"):
        of_kind = ("--files", files(directory, kind))
        assert ours(*of_kind) == dumped(*of_kind)
    dumped("--index-sanity-check", "--files", files(directory, ".index"))
    text = "\n".join(theirs)
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d+\]", text)
    assert re.search(r"count: 0 .* producerId: 4000 ", text), "the producer's last batch"
    batches = re.findall(r"baseOffset: (\d+) lastOffset: (\d+) ", text)
    holes = [after for before, after in pairwise(batches) if int(before[1]) + 1 < int(after[0])]
    assert holes, "offsets are missing"
