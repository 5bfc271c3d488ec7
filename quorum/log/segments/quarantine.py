"""Keeps the bytes that recovery cuts off, in `.damaged` files, which no node reads.

Recovery keeps them only if the log's owner says that other replicas have all acknowledged records
(`set_aside` of `OpenOptions`). It copies the damaged end of one segment, and renames the segments
that follow.

The name of a `.damaged` file is that of the segment's data file with this suffix. A new file
replaces an earlier one of the same name. If the node crashes after the copy but before recovery
cuts the log, the log is damaged as before. The next start then copies and cuts again.
"""

from __future__ import annotations

from quorate.quorum.log.files.names import DAMAGED_SUFFIX
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk

COPY_BYTES = 1 << 20
"""Bytes that `copy_tail` reads and writes at a time."""


def copy_tail(disk: Disk, segment: Segment, position: int) -> None:
    """Copy the bytes of a segment's data file from byte `position` on into its `.damaged` file.

    The segment does not change: the caller cuts it. Block; the copy is durable on return. Raise
    OSError."""
    file = disk.open(segment.path + DAMAGED_SUFFIX, create=True)
    try:
        file.truncate(0)
        while data := segment.file.pread(COPY_BYTES, position + file.size()):
            file.pwrite(data, file.size())
        file.sync()
    finally:
        file.close()
    disk.sync_dir(segment.path.rpartition("/")[0])


def rename_whole(disk: Disk, segment: Segment) -> None:
    """Rename the data file of a segment to its `.damaged` file. The caller removes the indexes.

    Block. The next flush of the log syncs the directory, and makes the new name durable. Raise
    OSError."""
    disk.rename(segment.path, segment.path + DAMAGED_SUFFIX)
