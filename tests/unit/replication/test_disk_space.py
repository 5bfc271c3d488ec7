"""The disk space and the memory of a deleted partition are freed. The tests ask the operating
system for open files, and weak references for memory.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import shutil
import weakref
from pathlib import Path

import pytest

from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.logs.log_opening import open_log
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.ids import random_uuid
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Seams

NAME = PartitionName("t", 0)
SEGMENT_BYTES = 64 * 1024


def open_paths(directory: Path) -> list[str]:
    """Return the paths below `directory` to which descriptors of this process refer."""
    links = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(each))
        except FileNotFoundError:  # the descriptor of this very listing
            continue
    return sorted(link for link in links if link.startswith(str(directory)))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are read from /proc")
async def test_a_deleted_partition_leaves_no_file_open(tmp_path: Path) -> None:
    disk = OsDisk()
    rng = random.Random(1)
    logs = LogDirectory(
        Seams(AsyncioClock(), rng, AioTransport(), disk),
        str(tmp_path),
        file_delete_delay_ms=0,
        on_failure=lambda error: pytest.fail(repr(error)),
    )
    logs.start()
    settings = LogSettings(segment_bytes=SEGMENT_BYTES)
    judged = logs.open_parameters(
        NAME, random_uuid(rng), settings, leader_epoch=0, peers_have_it=True
    )
    log = finished(open_log(disk, judged))
    logs.take_over(judged, log, lambda: None)
    while log.end_offset < 50:  # several segments, with indexes
        batch = build_value_batch(
            [b"x" * 8000], base_offset=log.end_offset, leader_epoch=0, timestamp_ms=0
        )
        log.append(batch, wall_ms=0)
    log.read(0, 100)
    assert open_paths(tmp_path)
    free = asyncio.Event()
    logs.delete(NAME, free.set)
    async with asyncio.timeout(10):
        await free.wait()
        while any(name.endswith("-delete") for name in disk.list(str(tmp_path))):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert open_paths(tmp_path) == []
    assert disk.open_files == 0
    disk.close()
    shutil.rmtree(tmp_path)


async def test_the_log_of_a_deleted_partition_is_freed_without_the_collector(
    tmp_path: Path,
) -> None:
    """A cycle that was alive when the collector's generations were frozen is never collected."""
    gc.disable()
    try:
        disk = OsDisk()
        rng = random.Random(1)
        logs = LogDirectory(
            Seams(AsyncioClock(), rng, AioTransport(), disk),
            str(tmp_path),
            file_delete_delay_ms=0,
            on_failure=lambda error: pytest.fail(repr(error)),
        )
        logs.start()
        parameters = logs.open_parameters(
            NAME, random_uuid(rng), LogSettings(), leader_epoch=0, peers_have_it=True
        )
        log = finished(open_log(disk, parameters))
        logs.take_over(parameters, log, lambda: None)
        log.append(
            build_value_batch([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=0), wall_ms=0
        )
        reference = weakref.ref(log)
        del log, parameters
        free = asyncio.Event()
        logs.delete(NAME, free.set)
        async with asyncio.timeout(10):
            await free.wait()
            while reference() is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        disk.close()
    finally:
        gc.enable()
