"""Registrations as the image holds them: their texts are cut to what every message can say.

Older versions stored whatever a registration brought. A host of 40,000 bytes then stopped each node
that answered with it. Such a record is still read. All nodes cut it alike at replay, so the broker
can be unregistered like any other, and no snapshot holds the long text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorate.quorum.metadata.records import Endpoint, FeatureRange

MAX_NAME_BYTES = 249
MAX_HOST_BYTES = 255
MAX_RACK_BYTES = 1000


def usable_endpoints(endpoints: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """Return the endpoints with names and hosts of a bounded size."""
    return tuple(
        each
        if _fits(each.name, MAX_NAME_BYTES) and _fits(each.host, MAX_HOST_BYTES)
        else replace(
            each, name=_cut(each.name, MAX_NAME_BYTES), host=_cut(each.host, MAX_HOST_BYTES)
        )
        for each in endpoints
    )


def usable_features(features: Sequence[FeatureRange]) -> tuple[FeatureRange, ...]:
    """Return the features with names of a bounded size."""
    return tuple(
        each
        if _fits(each.name, MAX_NAME_BYTES)
        else replace(each, name=_cut(each.name, MAX_NAME_BYTES))
        for each in features
    )


def usable_rack(rack: str | None) -> str | None:
    """Return the rack, cut to a bounded size."""
    return rack if rack is None or _fits(rack, MAX_RACK_BYTES) else _cut(rack, MAX_RACK_BYTES)


def _fits(text: str, most_bytes: int) -> bool:
    return len(text) * 4 <= most_bytes or len(text.encode()) <= most_bytes


def _cut(text: str, most_bytes: int) -> str:
    """Return the longest beginning of `text` that fits, in whole characters."""
    return text.encode()[:most_bytes].decode(errors="ignore")
