"""Bytes that are cut although they were synced: kept beside the log, to be looked at.

Only where somebody else has what they stood for. A crash in between leaves the log as damaged as it
was, so that the next start does it again.
"""

from __future__ import annotations

from quorate.quorum.log.names import DAMAGED_SUFFIX
from quorate.quorum.log.segment import Segment
from quorate.quorum.seams import Disk

COPY_BYTES = 1 << 20


def copy_tail(disk: Disk, segment: Segment, position: int) -> None:
    """What lies from `position` on, durably."""
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
    disk.rename(segment.path, segment.path + DAMAGED_SUFFIX)
