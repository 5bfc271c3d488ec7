"""Ids for log directories that Apache Kafka formatted before 3.7, when meta.properties had none.

Such a directory gets an id at the first start, as in Kafka. A directory that a node of Quorate has
used keeps its copy of meta.properties, or a mark. If meta.properties lacks the id there, it is
damaged, and no new id is written: a controller with a new id could vote twice in one epoch, because
the mark belongs to the earlier id.
"""

from __future__ import annotations

import logging

from quorate.config import properties
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import random_uuid, uuid_to_text
from quorate.quorum.log.files.checkpoints import read_small, replace
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.node.opening.meta_properties import (
    MAX_META_BYTES,
    META_COPY,
    META_FILE,
    decode,
    encode,
)
from quorate.quorum.node.opening.metadata_opening import is_used
from quorate.quorum.seams import Disk, Random

DIRECTORY_ID = "directory.id"

logger = logging.getLogger("quorate.storage")


def without_id(disk: Disk, config: NodeConfig) -> list[str]:
    """Return the directories of a node that Apache Kafka formatted without an id. Blocks.

    A directory that cannot be read, or that has another fault, is left out."""
    return [each for each in config.directories if _lacks_only_its_id(disk, config, each)]


def _lacks_only_its_id(disk: Disk, config: NodeConfig, path: str) -> bool:
    try:
        content = read_small(disk, f"{path}/{META_FILE}", max_bytes=MAX_META_BYTES)
        if content is None or disk.exists(f"{path}/{META_COPY}") or is_used(disk, config):
            return False
        return DIRECTORY_ID not in _entries(content, path)
    except (OSError, CorruptCheckpoint, ConfigError, UnicodeDecodeError):
        return False


def add_id(disk: Disk, path: str, random: Random) -> None:
    """Write a new id into the meta.properties of a directory, in one step. Blocks. The change is
    durable on return. Raise StorageError if the file is not valid with an id."""
    file = f"{path}/{META_FILE}"
    content = read_small(disk, file, max_bytes=MAX_META_BYTES)
    assert content is not None
    directory_id = random_uuid(random)
    line = f"\n{DIRECTORY_ID}={uuid_to_text(directory_id)}\n".encode()
    replace(disk, file, encode(decode(content + line, file)))
    logger.info("%s had no directory.id: wrote %s", file, uuid_to_text(directory_id))


def _entries(content: bytes, path: str) -> dict[str, str]:
    return {each.name: each.value for each in properties.parse(content.decode(), path)}
