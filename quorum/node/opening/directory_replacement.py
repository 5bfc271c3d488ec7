"""Replaces a node's metadata directory by a rebuilt one, atomically across crashes.

`quorate metadata-quorum force-voters` writes the new directory as `__cluster_metadata-0.rebuilt`,
in the same parent directory, and makes it durable. One small file then decides. Before this file
exists, nothing has changed. After it exists, the rebuilt directory takes the place of the old one,
which stays as a backup. If a crash interrupts the replacement, `finish_replacement` completes it.
Every start of a node calls that function.
"""

from __future__ import annotations

import logging

from quorate.quorum.log.files.checkpoints import MAX_STATE_FILE_BYTES, read_small, replace
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.node.replica.metadata_mark import remove_mark
from quorate.quorum.seams import Disk

REBUILT_DIRECTORY = f"{METADATA_DIRECTORY}.rebuilt"
DECISION_FILE = "quorate-rebuilt"
"""The file holds the name that the old directory gets."""

logger = logging.getLogger("quorate.storage")


def replace_metadata_directory(disk: Disk, parent: str, backup: str) -> None:
    """Replace the metadata directory in `parent`; the old one is renamed to `backup`. Block.

    The rebuilt directory must be durable. The decision is durable before anything is renamed. From
    then on only the backup leads back. The mark of the old directory is removed
    (`metadata_mark.py`). The replacement is durable on return."""
    replace(disk, f"{parent}/{DECISION_FILE}", backup.encode())
    _move(disk, parent, backup)


def replacement_is_pending(disk: Disk, parent: str) -> bool:
    """Return True if a replacement was interrupted that `finish_replacement` completes."""
    return disk.exists(f"{parent}/{DECISION_FILE}")


def finish_replacement(disk: Disk, parent: str) -> None:
    """Complete a replacement that was interrupted; do nothing if there is none. Block.

    Raise StorageError if the decision file is damaged."""
    backup = read_small(disk, f"{parent}/{DECISION_FILE}", max_bytes=MAX_STATE_FILE_BYTES)
    if backup is not None:
        name = backup.decode("utf-8", "replace")
        if not name.startswith(f"{METADATA_DIRECTORY}.") or not name.isprintable() or "/" in name:
            raise StorageError(
                f"{parent}/{DECISION_FILE} is damaged: {name[:80]!r} names no backup of "
                f"{METADATA_DIRECTORY}. Write the name that force-voters printed into this file, "
                "without a newline"
            )
        _move(disk, parent, name)
        logger.warning("completed an interrupted replacement of the metadata in %s", parent)


def _move(disk: Disk, parent: str, backup: str) -> None:
    current, rebuilt = f"{parent}/{METADATA_DIRECTORY}", f"{parent}/{REBUILT_DIRECTORY}"
    if disk.is_dir(rebuilt):
        if disk.is_dir(current):
            disk.rename(current, f"{parent}/{backup}")
            disk.sync_dir(parent)
        disk.rename(rebuilt, current)
        disk.sync_dir(parent)
    remove_mark(disk, parent)  # The mark describes the directory that was replaced.
    disk.remove(f"{parent}/{DECISION_FILE}")
    disk.sync_dir(parent)
