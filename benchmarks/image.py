"""The metadata image of many partitions: its memory, its snapshot, and the pauses that both cause.

No cluster is needed. There is no peer figure: the limit is the time to read and check the same
bytes. A topic has 1,000 partitions.

The benchmark uses the code of a node: its snapshot generator, its loader and its event loop. A
ticker on the same loop measures pauses (`pauses.py`). The benchmark also measures the replay of the
log when a node restarts.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks import run
from benchmarks.figure import Figure
from benchmarks.image_loading import Follower, WatchedClock, received, replayed, write_log
from benchmarks.pauses import Pauses, ticked
from benchmarks.run import QUORATE, Benchmark, Options
from quorate.cli.nodes.node_process import loop_factory
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import batches, build_value_batch
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot_file import read_snapshot
from quorate.quorum.node.allocator import merge_freed_at_once
from quorate.quorum.node.garbage import keep_collections_short
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.node.replica.snapshot_generator import SnapshotGenerator, SnapshotSettings
from quorate.quorum.raft.voter_history import STATIC_VOTERS
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Seams

PARTITIONS_PER_TOPIC = 1_000
BROKERS = 6
EPOCH = 1
TIMESTAMP_MS = 1_700_000_000_000
POLL_S = 0.01
CHUNK_BYTES = 1 << 20
SETTINGS = SnapshotSettings(
    bytes_between=1, interval_ms=0, retention_bytes=1 << 30, retention_ms=1 << 40
)


def measure(system: str, options: Options) -> list[Figure]:
    """Return the figures, or none for a peer. Raise RuntimeError if a loaded image differs.

    The settings of a node's garbage collector and allocator remain in this process."""
    if system != QUORATE:
        return []
    name = f"image of {options.partitions:,} partitions"
    gc.collect()
    before_mb = rss_mb()
    image = image_of(options.partitions)
    gc.collect()
    image_mb = rss_mb() - before_mb
    keep_collections_short()
    merge_freed_at_once()
    with TemporaryDirectory(prefix="quorate-bench-") as root:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            _, idle = runner.run(ticked(asyncio.sleep(1.0)))
            begin_cpu_s = time.process_time()
            taken_s, pauses, path = runner.run(snapshot(root, image))
            taken_cpu_s = time.process_time() - begin_cpu_s
            end = EpochOffset(EPOCH, image.last.offset + 1)
            disk = OsDisk()
            behind = Log.open(disk, f"{root}/behind", LogSettings(), wall_ms=0, clean=False)
            clock = WatchedClock(runner.get_loop())
            standby = Follower.of(clock, behind, end, image_of(options.partitions))
            got, received_pauses = runner.run(ticked(received(disk, standby, end, path)))
            log = write_log(root, history(options.partitions))
            again, replay_pauses = runner.run(ticked(replayed(log)))
            if not got.topics == again.topics == image.topics:
                raise RuntimeError("what a node came to is not the image")
            log.close()
            disk.close()
            del got, again, standby
        size = path.stat().st_size
        raw_s = raw_pass(path)
        begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
        read_snapshot(end, chunks(path))
        load_s, load_cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    return [
        Figure(f"{name}, memory", image_mb, "MB"),
        Figure(f"{name}, memory for each", image_mb * 1e6 / options.partitions, "B"),
        Figure(f"{name}, snapshot", size / 1e6, "MB"),
        Figure(f"{name}, written in", taken_s, "s"),
        *of_pauses("a snapshot is written", pauses),
        *of_pauses("the idle loop", idle),
        Figure(f"{name}, loaded in", load_s, "s"),
        *of_pauses("a running node takes a snapshot", received_pauses),
        *of_pauses("a node replays its log", replay_pauses),
        Figure("the same bytes only read and checked, CPU time", raw_s, "s"),
        Figure("written / read and checked, CPU time", taken_cpu_s / raw_s, "x"),
        Figure("loaded / read and checked, CPU time", load_cpu_s / raw_s, "x"),
    ]


def of_pauses(what: str, pauses: Pauses) -> list[Figure]:
    """Return the figures of the longest pauses during `what`."""
    return [
        Figure(f"{what}, longest pause", pauses.longest_ms, "ms"),
        Figure(f"{what}, longest pause but for cores", pauses.own_ms, "ms"),
        Figure(f"{what}, longest pause of CPU time", pauses.cpu_ms, "ms"),
    ]


def image_of(partitions: int) -> MetadataImage:
    """Return an image replayed from decoded records.

    As in a node, the records share no objects."""
    image, offset = MetadataImage(), -1
    for records in history(partitions):
        decoded = [decode_record(encode_record(record)) for record in records]
        offset += len(decoded)
        image, _ = replay(image, decoded, EpochOffset(EPOCH, offset), TIMESTAMP_MS)
    return image


def history(partitions: int) -> Iterator[list[MetadataRecord]]:
    """Yield the records of the image: first the features, then one list per topic."""
    yield [FeatureLevelRecord(name="metadata.version", feature_level=27)]
    for first in range(0, partitions, PARTITIONS_PER_TOPIC):
        number = first // PARTITIONS_PER_TOPIC
        topic_id, name = Uuid((number + 1).to_bytes(16, "big")), f"topic-{number}"
        records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
        for index in range(min(PARTITIONS_PER_TOPIC, partitions - first)):
            replicas = tuple(1 + (index + each) % BROKERS for each in range(3))
            records.append(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )
        value = str(number)
        records.append(
            ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value=value)
        )
        yield records


async def snapshot(root: str, image: MetadataImage) -> tuple[float, Pauses, Path]:
    """Write a snapshot of the image. Return (seconds, pauses, path).

    The time runs from the first record until the file is durable. It is up to POLL_S too long."""
    clock, disk = AsyncioClock(), OsDisk()
    seams = Seams(clock=clock, random=Random(), transport=AioTransport(), disk=disk)
    storage = MetadataStorage.open(disk, root, LogSettings(), wall_ms=clock.wall_ms())
    storage.log.reset_to(image.last.offset, EPOCH)
    storage.log.append(
        build_value_batch(
            [encode_record(NoOpRecord())],
            base_offset=image.last.offset,
            leader_epoch=EPOCH,
            timestamp_ms=TIMESTAMP_MS,
        ),
        wall_ms=clock.wall_ms(),
    )
    failures: list[BaseException] = []
    begun_s: list[float] = []

    def begun() -> MetadataImage:
        begun_s.append(time.perf_counter())
        return image

    generator = SnapshotGenerator(
        seams, storage, SETTINGS, begun, lambda offset: STATIC_VOTERS, failures.append
    )

    async def written() -> float:
        generator.start()
        while storage.snapshots.latest is None and not failures:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        return time.perf_counter() - begun_s[0]

    try:
        taken_s, pauses = await ticked(written())
        if failures:
            raise failures[0]
        latest = storage.snapshots.latest
        assert latest is not None
        return taken_s, pauses, Path(storage.snapshots.path(latest))
    finally:
        generator.close()
        storage.close()
        disk.close()


def rss_mb() -> float:
    """Return the resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in chunks."""
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def raw_pass(path: Path) -> float:
    """Return the CPU time for reading the batches and comparing their checksums, in seconds."""
    begin_s = time.process_time()
    for _ in batches(path.read_bytes()):
        pass
    return time.process_time() - begin_s


BENCHMARK = Benchmark("image", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
