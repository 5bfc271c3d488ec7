"""Checks that a node makes of its data directory before it starts.

The directory must be formatted (`quorum/offline/storage_format.py`) and belong to this node. This
module does not lock the directory: `directory_lock.py` does that for a node. Tools that work on the
directory of a stopped node make the same checks and take the same lock.
"""

from __future__ import annotations

import logging

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.node.meta_properties import MetaProperties, StorageError, read_meta
from quorate.quorum.seams import Disk

METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
"""Name of the directory of the metadata log, below `metadata.log.dir`."""
LOCK_FILE = ".lock"
"""A running node, or a tool, holds the lock of this file in the data directory."""

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


def require_formatted(disk: Disk, config: NodeConfig, *, repair: bool = True) -> MetaProperties:
    """Return the identity that meta.properties in the node's directory states. Block.

    If `repair` and meta.properties or its copy is missing or damaged, write both again. Raise
    StorageError if the directory is not formatted or belongs to another node. Raise it also if both
    files are damaged or they differ. If the configuration names a cluster, raise it also if the
    directory belongs to another cluster."""
    meta = read_meta(disk, config.log_dir, repair=repair)
    if meta is None:
        raise StorageError(
            f"No readable meta.properties files found: {config.log_dir} is not formatted. Run "
            "`quorate storage format -t CLUSTER_ID -c FILE`"
        )
    if meta.node_id != config.node_id:
        raise StorageError(
            f"{config.log_dir} belongs to node.id {meta.node_id}, not to {config.node_id}: "
            "correct log.dirs or node.id"
        )
    if config.cluster_id not in (None, meta.cluster_id):
        raise StorageError(
            f"{config.log_dir} belongs to cluster {meta.cluster_id}, not to {config.cluster_id}: "
            "correct log.dirs or CLUSTER_ID"
        )
    return meta
