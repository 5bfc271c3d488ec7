"""A comparison of the replicas' files after all writes have ended.

Batches are equal in every byte on all replicas, because the leader assigns offset and epoch and the
followers append the bytes that they fetch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batches.batch import BatchHeader


@dataclass(frozen=True, slots=True)
class Copy:
    """The end and the digest of one replica's log, which equal copies have in common."""

    end_offset: int
    last_epoch: int
    digest: str


def copy_of(log_dir: Path, topic: str, partition: int, start_offset: int = 0) -> Copy:
    """Return the end and the digest of a replica from `start_offset` on.

    It reads all segments. Torn tails are ignored. An empty log ends where its segment begins."""
    digest = hashlib.blake2b(digest_size=16)
    end_offset, last_epoch = 0, -1
    for segment in segments(log_dir, topic, partition):
        end_offset = max(end_offset, base_offset_of(segment))
        content = memoryview(segment.read_bytes())
        for position, header in whole_batches(content):
            if header.base_offset >= start_offset:
                digest.update(content[position : position + header.size_bytes])
                last_epoch = header.leader_epoch
            end_offset = header.next_offset
    return Copy(end_offset, last_epoch, digest.hexdigest())


def differing(
    log_dirs: Mapping[int, Path], topic: str, replicas: Mapping[int, Sequence[int]]
) -> dict[int, dict[int, Copy]]:
    """Return the partitions whose replicas differ, with the log of each replica.

    `log_dirs` maps each broker to its data directory, and `replicas` each partition to the brokers
    to compare.

    Each broker deletes old segments at a time of its own, so only the part that all of them still
    have is compared."""
    found = {}
    for partition, brokers in sorted(replicas.items()):
        start_offset = max(
            (
                base_offset_of(segment)
                for broker in brokers
                for segment in segments(log_dirs[broker], topic, partition)[:1]
            ),
            default=0,
        )
        copies = {
            broker: copy_of(log_dirs[broker], topic, partition, start_offset) for broker in brokers
        }
        if len(set(copies.values())) > 1:
            found[partition] = copies
    return found


def segments(log_dir: Path, topic: str, partition: int) -> list[Path]:
    """Return the segments of a partition, the oldest first."""
    return sorted((log_dir / f"{topic}-{partition}").glob("*.log"))


def base_offset_of(segment: Path) -> int:
    """Return the offset that a segment's name gives."""
    return int(segment.stem)


def only_here(mine: Path, theirs: Path, topic: str, partition: int) -> int:
    """Return the number of records in `mine` that `theirs` lacks at the same offsets.

    Both are data directories. Batches are compared as a whole."""
    known = {header[:3]: header for header in headers(theirs, topic, partition)}
    return sum(
        header.record_count
        for header in headers(mine, topic, partition)
        if (there := known.get(header[:3])) is None or there.crc != header.crc
    )


def headers(log_dir: Path, topic: str, partition: int) -> Iterator[BatchHeader]:
    """Yield the headers of all complete batches of a partition."""
    for segment in segments(log_dir, topic, partition):
        for _, header in whole_batches(memoryview(segment.read_bytes())):
            yield header
