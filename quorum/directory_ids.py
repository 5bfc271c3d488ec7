"""Directory ids: the identities of log directories (KIP-858).

Each log directory has an id of its own in its meta.properties. The metadata records which directory
of a broker holds a replica. Ids below RESERVED_IDS never belong to a real directory. Three of them
have a meaning.
"""

from __future__ import annotations

from collections.abc import Collection

from quorate.quorum.ids import Uuid

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


def is_online(directory: Uuid, registered: Collection[Uuid]) -> bool:
    """Return True if a replica in `directory` may lead and be in sync. `registered` are the online
    directories of its broker.

    A replica without a known directory counts as online, and LOST as offline. A broker that
    registered no directories hides none of them."""
    if directory in registered or directory in (UNASSIGNED, MIGRATING):
        return True
    return not registered and directory != LOST
