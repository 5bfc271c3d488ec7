"""Bounds on the texts of registrations in the image.

Older versions stored texts of any length. A host of 40,000 bytes stopped each node that put it into
a response. Records with such texts are still read: replay cuts the texts, in the same way on all
nodes. The broker can then be unregistered as usual, and no new snapshot contains the long text.

Lengths are bytes of UTF-8. A text is cut between characters, so it may be up to 3 bytes shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorate.quorum.metadata.records import Endpoint, FeatureRange

MAX_NAME_BYTES = 249
"""The maximum length of the name of a listener or a feature."""
MAX_HOST_BYTES = 255
"""The maximum length of a host."""
MAX_RACK_BYTES = 1000
"""The maximum length of a rack."""


def usable_endpoints(endpoints: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """Return the endpoints with names and hosts cut to MAX_NAME_BYTES and MAX_HOST_BYTES."""
    return tuple(
        each
        if _fits(each.name, MAX_NAME_BYTES) and _fits(each.host, MAX_HOST_BYTES)
        else replace(
            each, name=_cut(each.name, MAX_NAME_BYTES), host=_cut(each.host, MAX_HOST_BYTES)
        )
        for each in endpoints
    )


def usable_features(features: Sequence[FeatureRange]) -> tuple[FeatureRange, ...]:
    """Return the features with names cut to MAX_NAME_BYTES."""
    return tuple(
        each
        if _fits(each.name, MAX_NAME_BYTES)
        else replace(each, name=_cut(each.name, MAX_NAME_BYTES))
        for each in features
    )


def usable_rack(rack: str | None) -> str | None:
    """Return the rack cut to MAX_RACK_BYTES."""
    return rack if rack is None or _fits(rack, MAX_RACK_BYTES) else _cut(rack, MAX_RACK_BYTES)


def _fits(text: str, most_bytes: int) -> bool:
    return len(text) * 4 <= most_bytes or len(text.encode()) <= most_bytes


def _cut(text: str, most_bytes: int) -> str:
    """Return the longest prefix of `text` that fits, in whole characters."""
    return text.encode()[:most_bytes].decode(errors="ignore")
