"""The check of a received snapshot on the disk's thread, one batch at a time.

The disk's thread also saves votes and flushes the log. A snapshot of a million partitions takes
half a minute to check, so other work of that thread runs between the batches.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.snapshots import SnapshotFiles
from quorate.quorum.metadata.snapshot_file import SnapshotContents, reading
from quorate.quorum.seams import Disk

Checked = Callable[[SnapshotContents | None, int, BaseException | None], None]
"""Gets the contents, the size in bytes and the error of a check (`check_received`)."""


def check_received(
    disk: Disk,
    snapshots: SnapshotFiles,
    snapshot: EpochOffset,
    *,
    is_running: Callable[[], bool],
    done: Checked,
) -> None:
    """Check all batches of the received part file, then make it a durable snapshot file.

    This function returns immediately. `done` is called once on the event loop: with the contents,
    the size in bytes and no error, or with None, -1 and the error. An OSError means that this
    node's disk failed. Any other error means that the snapshot is damaged.

    The event loop calls `is_running` after each batch. If it returns False, the check ends and
    `done` is not called. The file may then be a part file or already a snapshot file."""
    steps = reading(snapshot, snapshots.chunks(snapshot, part=True))

    def check() -> tuple[SnapshotContents, int] | None:
        contents = next(steps)
        return None if contents is None else (contents, snapshots.freeze(snapshot))

    def checked(whole: tuple[SnapshotContents, int] | None, error: BaseException | None) -> None:
        if not is_running():
            return
        if error is not None:
            done(None, -1, error)
        elif whole is None:
            disk.submit(check, checked)
        else:
            done(*whole, None)

    disk.submit(check, checked)
