"""Locks a node's data directory at its start, and makes the directory ready to be opened."""

from __future__ import annotations

from quorate.config.node_config import NodeConfig
from quorate.quorum.node.data_directory import LOCK_FILE, keep_private, require_formatted
from quorate.quorum.node.directory_replacement import finish_replacement
from quorate.quorum.node.metadata_opening import adopt
from quorate.quorum.seams import DirectoryLock, Seams


class NodeRefused(Exception):
    """This node must not use the directory. The message says why, and what to do."""

    for_operator = True


def lock_directory(config: NodeConfig, seams: Seams) -> DirectoryLock:
    """Lock the data directory of a node that starts, and return the lock. Blocks.

    Remove the access of other users, complete an interrupted replacement of the metadata directory,
    and mark a directory that Apache Kafka formatted as new.

    Raise StorageError if the directory is not formatted or belongs to another node. Raise
    NodeRefused if another process holds the lock. Nothing has changed then. Raise StorageError also
    if the decision file of an interrupted replacement is damaged."""
    meta = require_formatted(seams.disk, config, repair=False)
    try:
        lock = seams.disk.lock(f"{config.log_dir}/{LOCK_FILE}")
    except BlockingIOError:
        raise NodeRefused(
            f"{config.log_dir} is in use by another process: stop that process first, or point "
            "log.dirs at another directory"
        ) from None
    for path in dict.fromkeys((config.log_dir, config.metadata_log_dir)):
        keep_private(seams.disk, path)
    finish_replacement(seams.disk, config.metadata_log_dir)
    adopt(seams.disk, config, meta.directory_id)
    return lock
