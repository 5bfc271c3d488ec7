"""The quota that applies to a client: the most specific one that is set (KIP-55).

A quota belongs to a user, a client id, or both. Each of them is named or the default. Clients that
match the same quota share one bucket, unless the quota has a part that distinguishes them: a quota
of a user bounds all client ids of that user together, and a quota of the default client id bounds
each client id for itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from quorate.quorum.metadata.image import ClientQuotaEntity

ANONYMOUS = "ANONYMOUS"
"""The user of every connection without authentication."""
USER, CLIENT_ID, IP = "user", "client-id", "ip"
NAMED, DEFAULT, ABSENT = "named", "default", "absent"
PRECEDENCE = (
    (NAMED, NAMED),
    (NAMED, DEFAULT),
    (NAMED, ABSENT),
    (DEFAULT, NAMED),
    (DEFAULT, DEFAULT),
    (DEFAULT, ABSENT),
    (ABSENT, NAMED),
    (ABSENT, DEFAULT),
)
"""The (user part, client id part) of a quota, the most specific first."""

Bucket = tuple[str, str]
"""The (user, client id) whose use is counted together. "" means all of them."""
Quotas = Mapping[ClientQuotaEntity, Mapping[str, float]]
"""The client quotas of an image."""


class Match(NamedTuple):
    """The quota of a client: its value, and the bucket that it bounds."""

    bound: float
    bucket: Bucket


def matching(quotas: Quotas, key: str, user: str, client_id: str) -> Match | None:
    """Return the quota `key` of a client, or None if none is set for it."""
    for user_part, client_part in PRECEDENCE:
        parts: list[tuple[str, str | None]] = []  # sorted by type, as in the image
        if client_part != ABSENT:
            parts.append((CLIENT_ID, client_id if client_part == NAMED else None))
        if user_part != ABSENT:
            parts.append((USER, user if user_part == NAMED else None))
        bound = quotas.get(tuple(parts), NONE).get(key)
        if bound is not None and is_usable(bound):
            return Match(
                bound,
                (
                    user if user_part != ABSENT else "",
                    client_id if client_part != ABSENT else "",
                ),
            )
    return None


def is_usable(bound: float) -> bool:
    """Return True if the quota is a finite number above 0.

    The rules store no other one, but a metadata log that Apache Kafka wrote may hold them."""
    return 0 < bound < math.inf


def has_key(quotas: Quotas, keys: frozenset[str]) -> bool:
    """Return True if any entity has one of the quotas `keys`."""
    return any(not keys.isdisjoint(each) for each in quotas.values())


NONE: Mapping[str, float] = {}
