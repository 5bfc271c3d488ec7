"""Keeps damaged bytes that recovery cuts off, in `.damaged` files, which no node reads.

Recovery uses it only if the log's owner says that other replicas have all acknowledged records
(`set_aside` of `OpenOptions`). A crash between the copy and the cut leaves the log damaged as
before, and the next start repeats both. A new `.damaged` file replaces an earlier one of the same
name.
"""

from __future__ import annotations

from quorate.quorum.log.names import DAMAGED_SUFFIX
from quorate.quorum.log.segment import Segment
from quorate.quorum.seams import Disk

COPY_BYTES = 1 << 20


def copy_tail(disk: Disk, segment: Segment, position: int) -> None:
    """Copy the bytes of a segment from `position` on to its `.damaged` file, durably. Block."""
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
    """Rename the data file of a segment to `.damaged`. Block. The next flush of the log syncs the
    name."""
    disk.rename(segment.path, segment.path + DAMAGED_SUFFIX)
