"""Removes, archives or renames files that have left a log. All functions block, in any thread.

The log no longer uses the files. The caller must do the work in the order in which the files left
the log, because a later segment or directory may take the same name. All functions raise OSError. A
removal is not synced: after a power cut the next start may find the files again.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.log.files.archive import archive
from quorate.quorum.log.files.names import deleted_directory_name, future_partition_of, partition_of
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk


def remove_segments(disk: Disk, expired: Iterable[Segment], archive_directory: str = "") -> None:
    """Remove the segments that `Log.take_expired` returned, oldest first, so that a crash leaves no
    hole.

    If `archive_directory` is not empty, each data file is moved there instead."""
    for segment in expired:
        if archive_directory:
            archive(disk, segment, archive_directory)
        segment.remove()


def remove_files(disk: Disk, paths: Iterable[str]) -> None:
    """Remove the renamed files of segments (`Segment.rename_deleted`). Missing files are skipped,
    because their directory may have been renamed meanwhile."""
    for path in paths:
        if disk.exists(path):
            disk.remove(path)


def rename_for_deletion(disk: Disk, directory: str, unique: str) -> str:
    """Rename the directory of a deleted log to `<topic>-<partition>.<unique>-delete`, and return
    its path. It may be a future directory.

    The topic is cut if the name would be too long. The rename is durable on return. The tree may be
    removed later (`Disk.remove_tree`). Raise ValueError if `directory` has another name than
    `<topic>-<partition>` or that of a future directory."""
    parent, _, name = directory.rpartition("/")
    partition = partition_of(name) or future_partition_of(name)
    if partition is None:
        raise ValueError(f"{directory} is not named <topic>-<partition>")
    target = f"{parent}/{deleted_directory_name(partition, unique)}"
    disk.rename(directory, target)
    disk.sync_dir(parent)
    return target
