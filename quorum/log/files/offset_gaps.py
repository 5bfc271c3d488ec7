"""The marker of a log in which offsets may be missing between batches.

The log cleaner removes whole batches, so the offsets of a compacted log have gaps. A follower gets
such gaps from its leader. In every other log a gap is damage, because the base offset of a batch
lies outside of its CRC. The marker is a file in the log's directory. It stays when the topic's
cleanup.policy changes, because the gaps stay too.

Invariant: the marker is durable before the log has its first gap. Gaps lie only below a batch of
the same segment: consecutive segments join without a gap, so that a missing segment is noticed.
"""

from __future__ import annotations

from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.seams import Disk

GAPS_NAME = "quorate-offset-gaps"
"""The name of the marker, an empty file."""


def allow_gaps(disk: Disk, directory: str) -> None:
    """Write the marker of the log in `directory`. It is durable on return. Block; may run in any
    thread."""
    path = f"{directory}/{GAPS_NAME}"
    if not disk.exists(path):
        disk.open(path, create=True).close()
        try:
            disk.sync_dir(directory)
        except OutOfFiles:  # the next call must sync, too
            disk.remove(path)
            raise
