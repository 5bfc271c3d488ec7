"""Settles the files that an interrupted deletion, compaction or split left in a log's directory.

The rules are Apache Kafka's. `.deleted` and `.cleaned` files are removed, apart from deleted
snapshots, which `snapshots.py` removes. `.swap` files from the first `.cleaned` offset on are
removed too, because that swap had not been decided. All other `.swap` files had been decided: the
segments that they replace are removed, and then they are renamed, the data file after its offset
index. Indexes without a `.log` file are removed. `segment_swap.py` writes these files.
"""

from __future__ import annotations

from quorate.quorum.log.batches.batch import HEADER_BYTES, read_header
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.files.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_DELETED_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_of,
)
from quorate.quorum.seams import Disk

INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def settle_leftovers(disk: Disk, directory: str, names: list[str]) -> list[str]:
    """Settle the leftover files among `names`, and return the names that remain. Block.

    Raise CorruptLog if a swapped segment has an invalid batch header, or OSError."""
    if any(name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)) for name in names):
        _settle(disk, directory, names)
        names = disk.list(directory)
    logs = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    kept = []
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        if dot + suffix in INDEX_SUFFIXES and offset_of(name) is not None and stem not in logs:
            disk.remove(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept


def _settle(disk: Disk, directory: str, names: list[str]) -> None:
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    first_cleaned = min((offset_of(name) or 0 for name in cleaned), default=None)
    swaps = []
    for name in names:
        if name.endswith(DELETED_SUFFIX) and not name.endswith(SNAPSHOT_DELETED_SUFFIX):
            disk.remove(f"{directory}/{name}")
        elif name.endswith(SWAP_SUFFIX):
            if first_cleaned is not None and (offset_of(name) or 0) >= first_cleaned:
                disk.remove(f"{directory}/{name}")
            else:
                swaps.append(name)
    for name in cleaned:
        disk.remove(f"{directory}/{name}")

    swapped_logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if swapped_logs:
        first = min(offset_of(name) or 0 for name in swapped_logs)
        end = max(_end_offset(disk, directory, name) for name in swapped_logs)
        for name in disk.list(directory):
            offset = offset_of(name)
            if offset is not None and name.endswith(SEGMENT_SUFFIXES) and first <= offset < end:
                disk.remove(f"{directory}/{name}")
        disk.sync_dir(directory)  # a removed segment must not come back beside its replacement
    for name in swaps:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    disk.sync_dir(directory)


def _end_offset(disk: Disk, directory: str, name: str) -> int:
    """Return the offset after the last batch of a segment that has no index yet."""
    path = f"{directory}/{name}"
    end, position = (offset_of(name) or 0), 0
    file = disk.open(path, writable=False)
    try:
        size = file.size()
        while position + HEADER_BYTES <= size:
            header = read_header(file.pread(HEADER_BYTES, position))
            end = header.next_offset
            position += header.size_bytes
        return end
    except CorruptBatch as error:
        raise CorruptLog(path, position, end, str(error)) from error
    finally:
        file.close()
