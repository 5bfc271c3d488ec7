"""The memory of one task: a slice of a log, decoded with all columns in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.segments import SLICE_BYTES
from quorate.quorum.analytics.spark.options import MAX_SLICE_BYTES, MAX_TASK_MIB
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import MetadataRecord, NoOpRecord
from tests.unit.analytics.logs import A, change, created, write_segment

TASK = """
import sys
from quorate.quorum.analytics.log.segments import log_slices
from quorate.quorum.analytics.spark.rows import Request, arrow_batches

directory, slice_bytes = sys.argv[1], int(sys.argv[2])
piece = log_slices(directory, slice_bytes)[0]
print(sum(each.num_rows for each in arrow_batches(piece, Request())))
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""
"""`ru_maxrss` would also count the memory of the test's own process, from which this one begins."""
WIDE = replace(created(A, 0, 1), replicas=tuple(range(30)), isr=tuple(range(30)))


def peak_mib(directory: Path, record: MetadataRecord, per_batch: int, slice_bytes: int) -> float:
    """Return the largest resident memory, in MiB, of a process that decodes one whole slice."""
    values, size = [encode_record(record)] * per_batch, 0
    made: list[bytes] = []
    while size < slice_bytes:
        batch = bytes(
            build_value_batch(
                values, base_offset=len(made) * per_batch, leader_epoch=1, timestamp_ms=1
            )
        )
        made.append(batch)
        size += len(batch)
    path = write_segment(directory, 0, b"".join(made))
    command = [sys.executable, "-c", TASK, str(path.parent), str(slice_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, kib = map(int, done.stdout.split())
    assert rows > 0.4 * len(made) * per_batch
    return kib / 1024


@pytest.mark.parametrize(
    ("record", "per_batch"),
    [(change(A, 0, "", leader=2), 10), (NoOpRecord(), 30_000)],
    ids=["changes", "noops"],
)
def test_a_slice_of_the_default_size(
    tmp_path: Path, record: MetadataRecord, per_batch: int
) -> None:
    assert peak_mib(tmp_path, record, per_batch, SLICE_BYTES) < MAX_TASK_MIB


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("record", "per_batch"),
    [(change(A, 0, "", leader=2), 10), (NoOpRecord(), 10), (NoOpRecord(), 30_000), (WIDE, 10)],
    ids=["changes", "noops", "many-noops", "wide"],
)
def test_a_slice_of_the_largest_size(
    tmp_path: Path, record: MetadataRecord, per_batch: int
) -> None:
    assert peak_mib(tmp_path, record, per_batch, MAX_SLICE_BYTES) < MAX_TASK_MIB
