"""Checks that a node makes of its data directories before it starts.

The directories must be formatted (`quorum/offline/storage_format.py`) and belong to this node. This
module does not lock them: `directory_lock.py` does that for a node. Tools that work on the
directory of a stopped node make the same checks and take the same lock.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from quorate.config.node_config import NodeConfig
from quorate.quorum.directory_ids import is_reserved
from quorate.quorum.ids import METADATA_TOPIC, Uuid, uuid_to_text
from quorate.quorum.node.opening.meta_properties import MetaProperties, StorageError, read_meta
from quorate.quorum.seams import Disk

METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
"""Name of the directory of the metadata log, below `metadata.log.dir`."""
LOCK_FILE = ".lock"
"""A running node, or a tool, holds the lock of this file in the data directory."""

NONE_OFFLINE: Mapping[str, OSError] = {}

logger = logging.getLogger("quorate.storage")


def keep_private(disk: Disk, path: str) -> None:
    """Set the mode of an existing directory to 0700, so that other users have no access. Block.

    Log a warning if that changed the mode, or if only another user may change it."""
    try:
        if disk.restrict(path):
            logger.warning("other users had access to %s: changed its mode to 0700", path)
    except PermissionError as error:
        logger.warning(
            "other users have access to %s, and it belongs to another user (%s): run `chmod 700` "
            "on it as its owner",
            path,
            error,
        )


@dataclass(frozen=True, slots=True)
class DataDirectories:
    """The identities of a node's data directories.

    `metadata` is that of the metadata directory. `log_dirs` has the directory id of each log
    directory that can be read. `offline` has the error of each one that cannot."""

    metadata: MetaProperties
    log_dirs: dict[str, Uuid]
    offline: dict[str, OSError]


def require_formatted(
    disk: Disk,
    config: NodeConfig,
    *,
    repair: bool = True,
    offline: Mapping[str, OSError] = NONE_OFFLINE,
) -> DataDirectories:
    """Return the identities that meta.properties in the node's directories states. Block.

    If `repair` and meta.properties or its copy is missing or damaged, write both again. A log
    directory that cannot be read is offline, as in Kafka, unless it is the metadata directory or
    the only one that is left. Its OSError is raised then. `offline` has the directories that are
    known to be offline.

    Raise StorageError in these cases:

    - A directory that can be read is not formatted, or belongs to another node.
    - Both files are damaged, or they differ.
    - A directory belongs to another cluster than the metadata directory, or than the one that the
      configuration names.
    - A directory id is reserved, or two directories have the same one (KIP-858)."""
    found: dict[str, MetaProperties] = {}
    offline = dict(offline)
    for path in config.directories:
        if path in offline:
            continue
        try:
            found[path] = _read_formatted(disk, config, path, repair=repair)
        except OSError as error:
            if path == config.metadata_log_dir:
                raise
            offline[path] = error
    if len(offline) == len(config.log_dirs):
        raise next(iter(offline.values()))
    metadata = found[config.metadata_log_dir]
    check_equal(found, config)
    log_dirs = {path: found[path].directory_id for path in config.log_dirs if path in found}
    return DataDirectories(metadata, log_dirs, offline)


def _read_formatted(disk: Disk, config: NodeConfig, path: str, *, repair: bool) -> MetaProperties:
    meta = read_meta(disk, path, repair=repair)
    if meta is None:
        raise StorageError(
            f"No readable meta.properties files found: {path} is not formatted. Run "
            "`quorate storage format -t CLUSTER_ID -c FILE`"
            + (" --ignore-formatted" if len(config.directories) > 1 else "")
        )
    if meta.node_id != config.node_id:
        raise StorageError(
            f"{path} belongs to node.id {meta.node_id}, not to {config.node_id}: "
            "correct log.dirs or node.id"
        )
    if config.cluster_id not in (None, meta.cluster_id):
        raise StorageError(
            f"{path} belongs to cluster {meta.cluster_id}, not to {config.cluster_id}: "
            "correct log.dirs or CLUSTER_ID"
        )
    return meta


def check_equal(found: Mapping[str, MetaProperties], config: NodeConfig) -> None:
    """Raise StorageError unless all directories belong to one cluster and have ids of their own.

    A metadata directory outside of log.dirs may share the id of the only log directory. Earlier
    versions of Quorate formatted it like that."""
    holders: dict[Uuid, str] = {}
    metadata = config.metadata_log_dir
    cluster_id = found[metadata].cluster_id
    for path, meta in found.items():
        if meta.cluster_id != cluster_id:
            raise StorageError(
                f"{path} belongs to cluster {meta.cluster_id}, but {metadata} to {cluster_id}: "
                "correct log.dirs"
            )
        text = uuid_to_text(meta.directory_id)
        if is_reserved(meta.directory_id):
            raise StorageError(
                f"{path} has the reserved directory.id {text}. Format another directory"
            )
        holder = holders.setdefault(meta.directory_id, path)
        shared = holder == metadata not in config.log_dirs and len(config.log_dirs) == 1
        if holder != path and not shared:
            raise StorageError(
                f"{holder} and {path} have the same directory.id {text}. One is a copy of the "
                "other: remove the copy from log.dirs"
            )
