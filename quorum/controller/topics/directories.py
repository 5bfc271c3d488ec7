"""The directory ids of new replicas (KIP-858).

Brokers choose the directory of a replica. The controller names it only if the broker has a single
one.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.directory_ids import MIGRATING, UNASSIGNED
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage


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
