"""Recovery of a controller: the time from its start until it is active, with a million records.

One run replays the log alone. Another one loads a snapshot and replays the last tenth of the
records.

The controller is the only voter, so it waits for no other node. For comparison, the same with an
empty log is measured, and the CPU time for reading and checking the same bytes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import decode, run
from benchmarks.cluster import QUORATE as COMMAND
from benchmarks.figure import Figure
from benchmarks.image import raw_pass
from benchmarks.run import QUORATE, Benchmark, Options
from benchmarks.target import cpu_s
from quorate.cli.nodes.cluster_dir import HOST, free_ports
from quorate.quorum.ids import METADATA_TOPIC, EpochOffset
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.names import segment_file
from quorate.quorum.log.snapshots.snapshots import snapshot_name
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import FeatureLevelRecord, MetadataRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot_file import write_snapshot
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.voter_history import STATIC_VOTERS

RECORDS = 1_000_000
TAIL = RECORDS // 10
"""The number of records after the snapshot."""
BATCH_RECORDS = 8
EPOCH = 1
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
ACTIVE = "active controller of epoch"
"""The text in the controller's log that shows its activation."""
TIMEOUT_S = 600.0
POLL_S = 0.005
PASSES = 3


def measure(system: str, _: Options) -> list[Figure]:
    """Return the figures, or none for a peer."""
    if system != QUORATE:
        return []
    with TemporaryDirectory(prefix="quorate-bench-") as name:
        root = Path(name)
        empty = Controller(root / "empty")
        log = Controller(root / "log")
        whole = write_log(log.directory, 0)
        both = Controller(root / "both")
        first = RECORDS - TAIL
        snapshot = write_image(both.directory, first)
        tail = write_log(both.directory, first)
        raw_s = raw_pass(whole)
        raw_both_s = raw_pass(snapshot) + raw_pass(tail)
        empty_s, empty_cpu_s = empty.started_s()
        log_s, log_cpu_s = log.started_s()
        both_s, both_cpu_s = both.started_s()
        log_mb, both_mb = size_mb(whole), size_mb(snapshot) + size_mb(tail)
    log_cpu_s, both_cpu_s = log_cpu_s - empty_cpu_s, both_cpu_s - empty_cpu_s
    return [
        Figure("controller active, empty log", empty_s, "s"),
        Figure(f"controller active, log of {RECORDS:,} records", log_s, "s"),
        Figure(f"the same, snapshot and {TAIL:,} records", both_s, "s"),
        Figure("the log's size", log_mb, "MB"),
        Figure("the snapshot's and its tail's", both_mb, "MB"),
        Figure("recovery from the log, CPU time beyond empty", log_cpu_s, "s"),
        Figure("recovery from both, CPU time beyond empty", both_cpu_s, "s"),
        Figure("the log only read and checked, CPU time", raw_s, "s"),
        Figure("recovery from the log / read and checked", log_cpu_s / raw_s, "x"),
        Figure("recovery from both / read and checked", both_cpu_s / raw_both_s, "x"),
    ]


class Controller:
    """A controller that is the only voter of its quorum. Its directory is formatted on creation."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        (port,) = free_ports(1)
        self._file = root / "server.properties"
        self._file.write_text(
            "process.roles=controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@{HOST}:{port}\n"
            f"listeners=CONTROLLER://{HOST}:{port}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={root / 'data'}\n"
            f"metadata.log.max.record.bytes.between.snapshots={1 << 40}\n"
        )
        formatting = (*COMMAND, "storage", "format", "-t", CLUSTER_ID, "-c", str(self._file))
        subprocess.run(formatting, check=True, stdout=subprocess.DEVNULL)
        self._log = root / "node.log"
        self.directory = root / "data" / f"{METADATA_TOPIC}-0"
        self.directory.mkdir(exist_ok=True)

    def started_s(self) -> tuple[float, float]:
        """Start the controller several times. Return the best (seconds, CPU seconds) until it is
        active.

        Other processes may use the machine, so the best run counts. Each run ends with SIGKILL, so
        that the next one finds no clean shutdown.
        """
        return min(self._started_s() for _ in range(PASSES))

    def _started_s(self) -> tuple[float, float]:
        begin_s = time.monotonic()
        with open(self._log, "wb") as log:
            process = subprocess.Popen((*COMMAND, "server", str(self._file)), stderr=log)
        try:
            while ACTIVE not in self._log.read_text():
                if process.poll() is not None or time.monotonic() - begin_s > TIMEOUT_S:
                    raise RuntimeError(f"the controller did not start:\n{self._log.read_text()}")
                time.sleep(POLL_S)
            return time.monotonic() - begin_s, cpu_s(process.pid)
        finally:
            process.kill()
            process.wait()


def history() -> Iterator[MetadataRecord]:
    """Yield RECORDS records."""
    version = FeatureLevelRecord(name="metadata.version", feature_level=27)
    return islice(chain([version], decode.history()), RECORDS)


def write_log(directory: Path, first: int) -> Path:
    """Write the records from offset `first` on in one segment, and the election of its epoch.

    Return the path of the segment."""
    ElectionFile(OsDisk(), str(directory), ()).save(Election(EPOCH))
    path = Path(segment_file(str(directory), first, ".log"))
    values = map(encode_record, islice(history(), first, None))
    offset = first
    with open(path, "wb") as log:
        while batch := list(islice(values, BATCH_RECORDS)):
            timestamp_ms = decode.FIRST_TIMESTAMP_MS + offset
            log.write(
                build_value_batch(
                    batch, base_offset=offset, leader_epoch=EPOCH, timestamp_ms=timestamp_ms
                )
            )
            offset += len(batch)
    return path


def write_image(directory: Path, end: int) -> Path:
    """Write a snapshot of all records below offset `end`, and return its path."""
    image, offset = MetadataImage(), 0
    records = islice(history(), end)
    while taken := list(islice(records, decode.BATCH_RECORDS * 100)):
        decoded = [decode_record(encode_record(record)) for record in taken]
        offset += len(decoded)
        last = EpochOffset(EPOCH, offset - 1)
        image, _ = replay(image, decoded, last, decode.FIRST_TIMESTAMP_MS + offset)
    path = directory / snapshot_name(EpochOffset(EPOCH, end))
    with open(path, "wb") as file:
        for batch in write_snapshot(image, STATIC_VOTERS):
            file.write(batch)
    return path


def size_mb(path: Path) -> float:
    """Return the size of a file in MB."""
    return path.stat().st_size / 1e6


BENCHMARK = Benchmark("recovery", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
