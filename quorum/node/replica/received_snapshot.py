"""The check of a received snapshot in the disk's thread, one batch at a time.

The check of a snapshot of a million partitions takes half a minute. The same thread saves votes and
flushes the log. It can do that work between two batches of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.disks.retried_work import RetriedWork
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles
from quorate.quorum.metadata.snapshot_file import SnapshotContents, reading

Checked = Callable[[SnapshotContents | None, int, BaseException | None], None]
"""A function that gets the result of `check_received`: contents, size in bytes, error."""


def check_received(
    work: RetriedWork,
    snapshots: SnapshotFiles,
    snapshot: EpochOffset,
    *,
    is_running: Callable[[], bool],
    done: Checked,
) -> None:
    """Check all batches of a received snapshot, then give its file the final name.

    The received bytes are in the part file of `snapshot`, whose name ends with `.part`. This
    function returns immediately. `done` is called once, on the event loop:

    - with the contents, the size in bytes and None. The file is durable under its final name.
    - with None, -1 and an OSError: this node's disk failed. The file may have either name.
    - with None, -1 and any other error: the snapshot is damaged. The part file remains.

    The event loop calls `is_running` after each batch, the last one included. If it returns False,
    the check ends and `done` is not called. The file may have either name then, too.

    If the process lacks a file descriptor, the check begins anew a moment later."""
    steps = reading(snapshot, snapshots.chunks(snapshot, part=True))

    contents: SnapshotContents | None = None

    def check() -> tuple[SnapshotContents, int] | None:
        nonlocal steps, contents
        try:
            contents = contents or next(steps)
        except OutOfFiles:
            steps = reading(snapshot, snapshots.chunks(snapshot, part=True))
            raise
        return None if contents is None else (contents, snapshots.freeze(snapshot))

    def checked(whole: tuple[SnapshotContents, int] | None, error: BaseException | None) -> None:
        if not is_running():
            return
        if error is not None:
            done(None, -1, error)
        elif whole is None:
            work.submit(check, checked)
        else:
            done(*whole, None)

    work.submit(check, checked)
