"""Locks a node's log directories at its start, and makes them ready to be opened."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.config.node_config import NodeConfig
from quorate.quorum.node.opening.data_directory import LOCK_FILE, keep_private, require_formatted
from quorate.quorum.node.opening.directory_replacement import finish_replacement
from quorate.quorum.node.opening.metadata_opening import adopt
from quorate.quorum.node.opening.missing_directory_ids import add_id, without_id
from quorate.quorum.seams import DirectoryLock, Seams


class NodeRefused(Exception):
    """This node must not use the directory. The message says why, and what to do."""

    for_operator = True


class DirectoryLocks:
    """The locks of the log directories of a node. `offline` has the error of each directory that
    cannot be used."""

    def __init__(self, offline: Mapping[str, OSError]) -> None:
        self.offline = dict(offline)
        self._locks: list[DirectoryLock] = []

    def take(self, seams: Seams, log_dir: str) -> None:
        """Lock one directory. Raise NodeRefused if another process holds the lock, and OSError."""
        try:
            self._locks.append(seams.disk.lock(f"{log_dir}/{LOCK_FILE}"))
        except BlockingIOError:
            raise NodeRefused(
                f"{log_dir} is in use by another process: stop that process first, or point "
                "log.dirs at another directory"
            ) from None

    def release(self) -> None:
        """Release all locks. A second call does nothing."""
        for each in self._locks:
            each.release()


def lock_directories(config: NodeConfig, seams: Seams) -> DirectoryLocks:
    """Lock the log directories of a node that starts, and return the locks. Blocks. Directories
    that cannot be read are left out.

    Remove the access of other users, complete an interrupted replacement of the metadata directory,
    and mark a directory that Apache Kafka formatted as new. If it has no id, because
    Kafka formatted it before 3.7, write one.

    Raise StorageError if a directory is not formatted or belongs to another node. Raise NodeRefused
    if another process holds a lock. Nothing has changed then, apart from ids that were missing.
    Raise StorageError also if the decision file of an interrupted replacement is damaged."""
    _add_missing_ids(config, seams)
    found = require_formatted(seams.disk, config, repair=False)
    locks = DirectoryLocks(found.offline)
    try:
        for path in found.log_dirs:
            try:
                locks.take(seams, path)
                keep_private(seams.disk, path)
            except OSError as error:
                locks.offline[path] = error
                if path == config.metadata_log_dir or len(locks.offline) == len(config.log_dirs):
                    raise
        if config.metadata_log_dir not in found.log_dirs:
            keep_private(seams.disk, config.metadata_log_dir)
        finish_replacement(seams.disk, config.metadata_log_dir)
        adopt(seams.disk, config, found.metadata.directory_id)
    except BaseException:
        locks.release()
        raise
    return locks


def _add_missing_ids(config: NodeConfig, seams: Seams) -> None:
    for path in without_id(seams.disk, config):
        locks = DirectoryLocks({})
        try:
            locks.take(seams, path)
            add_id(seams.disk, path, seams.random)
        finally:
            locks.release()
