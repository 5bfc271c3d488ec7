"""Directory ids of replicas: the log directory of its broker that holds a replica (KIP-858).

Brokers choose the directory. The controller names it only if the broker has a single one. Ids below
RESERVED_IDS are reserved and never belong to a real directory.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage

MIGRATING = Uuid((0).to_bytes(16, "big"))
"""The directory of a replica whose broker registered no directories."""
UNASSIGNED = Uuid((1).to_bytes(16, "big"))
"""The directory of a replica for which the broker has not chosen one."""
LOST = Uuid((2).to_bytes(16, "big"))
"""The directory of a replica whose log directory is offline."""
RESERVED_IDS = 100
"""The number of ids, from 0 on, that no real directory has."""


def is_reserved(directory: Uuid) -> bool:
    """Return True if the id is one that no real directory may have."""
    return int.from_bytes(directory, "big") < RESERVED_IDS


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    """Return the directory of a new replica: the broker's only one, else UNASSIGNED, or MIGRATING
    if the broker registered no directories."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED


def default_directories(image: MetadataImage, replicas: Iterable[int]) -> tuple[Uuid, ...]:
    """Return the default directory of each replica, in the same order."""
    return tuple(default_directory(image, replica) for replica in replicas)
