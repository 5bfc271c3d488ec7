"""The check of the finalized features against those that this release supports.

A feature level decides which records and messages the nodes write. A node that does not know a
level would act wrongly on them, so it stops when its committed image has such a level. Before that,
UpdateFeatures refuses a level that a registered node does not support
(`quorum/controller/features/update_features.py`). Only a node of an older release that starts after
the update meets this check, as in Kafka's FeatureControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.quorum.controller.features.update_features import DISABLED
from quorate.quorum.metadata.records import FeatureRange


class UnsupportedFeature(Exception):
    """The cluster uses a level of a feature that this release does not support."""

    for_operator = True


def check_supported_features(
    finalized: Mapping[str, int], supported: Mapping[str, tuple[int, int]]
) -> None:
    """Raise UnsupportedFeature if a finalized level is outside of the supported range. The range of
    an unknown feature is 0 to 0."""
    for name in sorted(finalized):
        low, high = supported.get(name, DISABLED)
        if not low <= finalized[name] <= high:
            raise UnsupportedFeature(
                f"The cluster uses {name} {finalized[name]}, and this release supports {low} to "
                f"{high}. Start this node with a release that supports it."
            )


def supported(
    finalized: Mapping[str, int],
    ranges: Mapping[str, tuple[int, int]],
    fail: Callable[[BaseException], None],
) -> bool:
    """Return True if this release supports the finalized features. Otherwise call `fail` with an
    UnsupportedFeature, and return False."""
    try:
        check_supported_features(finalized, ranges)
    except UnsupportedFeature as error:
        fail(error)
        return False
    return True


def supported_ranges(
    supported: Mapping[str, tuple[int, int]],
) -> tuple[FeatureRange, ...]:
    """Return the ranges of a registration, in order of the names."""
    return tuple(
        FeatureRange(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in sorted(supported.items())
    )
