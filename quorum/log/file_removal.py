"""Files that a log has let go of: removed, archived or renamed, in any thread.

The log has forgotten them before; whoever does the work does it in the order in which it was asked
for, since a name may be wanted again.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.log.archive import archive
from quorate.quorum.log.names import deleted_directory_name, partition_of
from quorate.quorum.log.segment import Segment
from quorate.quorum.seams import Disk


def remove_segments(disk: Disk, expired: Iterable[Segment], archive_directory: str = "") -> None:
    """Blocks. What `Log.take_expired` gave up, oldest first (a crash leaves no hole), into the
    archive if there is one."""
    for segment in expired:
        if archive_directory:
            archive(disk, segment, archive_directory)
        segment.remove()


def remove_files(disk: Disk, paths: Iterable[str]) -> None:
    """Blocks. Segments that were retired, unless their directory was renamed meanwhile."""
    for path in paths:
        if disk.exists(path):
            disk.remove(path)


def rename_for_deletion(disk: Disk, directory: str, unique: str) -> str:
    """Blocks. The directory is `<topic>-<partition>.<unique>-delete` from now on, durably; where it
    is. Its log was marked as deleted; removing the tree can wait (`Disk.remove_tree`)."""
    parent, _, name = directory.rpartition("/")
    partition = partition_of(name)
    if partition is None:
        raise ValueError(f"{directory} is not named <topic>-<partition>")
    target = f"{parent}/{deleted_directory_name(partition, unique)}"
    disk.rename(directory, target)
    disk.sync_dir(parent)
    return target
