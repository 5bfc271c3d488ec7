"""Checks that a node makes of its data directory before it starts.

The directory must be formatted (`quorum/offline/storage_format.py`) and belong to this node. Tools
that work on the directory of a stopped node make the same checks and take the same lock.
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
    """Take access to an existing directory from group and others, as far as this user may."""
    try:
        if disk.restrict(path):
            logger.warning("%s was open to group or others: its mode is 0700 now", path)
    except PermissionError as error:
        logger.warning(
            "%s is open to group or others, and belongs to another user (%s): run `chmod "
            "700` on it as its owner",
            path,
            error,
        )


def require_formatted(disk: Disk, config: NodeConfig, *, repair: bool = True) -> MetaProperties:
    """Return the identity in the node's directory. Block.

    `repair` renews a damaged one of the two copies. Raise StorageError if the directory is not
    formatted or belongs to another node or cluster."""
    meta = read_meta(disk, config.log_dir, repair=repair)
    if meta is None:
        raise StorageError(
            f"No readable meta.properties files found: {config.log_dir} is not formatted; run "
            "`quorate storage format -t CLUSTER_ID -c FILE`"
        )
    if meta.node_id != config.node_id:
        raise StorageError(
            f"{config.log_dir} belongs to node.id {meta.node_id}, not to {config.node_id}: set "
            "log.dirs or node.id right"
        )
    if config.cluster_id not in (None, meta.cluster_id):
        raise StorageError(
            f"{config.log_dir} belongs to cluster {meta.cluster_id}, not to {config.cluster_id}: "
            "set log.dirs or CLUSTER_ID right"
        )
    return meta
