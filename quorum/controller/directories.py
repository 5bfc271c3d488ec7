"""Directory ids of replicas (KIP-858): which of a broker's log directories holds each one.

Brokers choose; the controller only fills in what it cannot get wrong: the one directory of a broker
that has one. The lowest hundred ids are reserved.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage

MIGRATING = Uuid((0).to_bytes(16, "big"))
UNASSIGNED = Uuid((1).to_bytes(16, "big"))
LOST = Uuid((2).to_bytes(16, "big"))
RESERVED_IDS = 100


def is_reserved(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < RESERVED_IDS


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED


def default_directories(image: MetadataImage, replicas: Iterable[int]) -> tuple[Uuid, ...]:
    return tuple(default_directory(image, replica) for replica in replicas)
