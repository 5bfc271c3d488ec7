"""UpdateFeatures: an administrator changes the cluster's feature levels (KIP-584, KIP-778).

A request changes all of its features or none. Every broker and this controller must support a new
level. A level is lowered only if the request permits a downgrade. metadata.version may only pass
levels that did not change the contents of the metadata log. No code rewrites the log, so an unsafe
downgrade is refused, as in Kafka.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from quorate.quorum.controller.context import Context
from quorate.quorum.controller.eligible_leaders import stale_elr_records
from quorate.quorum.controller.min_isr_configs import min_isr_for_all
from quorate.quorum.controller.result import RequestRefused, Result
from quorate.quorum.metadata.image import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from quorate.quorum.metadata.records import FeatureLevelRecord, MetadataRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

CHANGED_THE_LOG = frozenset({7, 8, 11, 13, 14, 15, 17, 23})
"""The levels of metadata.version that introduced new records or fields (3.3-IV3 to 4.0-IV1)."""
NEEDED_METADATA_VERSION = {(ELIGIBLE_LEADER_REPLICAS, 1): 23}
"""The lowest metadata.version with which each feature level may be used, by (feature, level).
Level 23 (4.0-IV1) introduced the fields of eligible leader replicas."""
FAILED = "The update failed for all features since the following feature had an error: "


class UpgradeType(enum.IntEnum):
    """Kafka's codes for the direction of a change that a request permits."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(context: Context, request: UpdateFeaturesRequest) -> Result:
    """Change feature levels. The first update that is not valid fails all of them. A level that is
    current gets no record. A request with `validate_only` writes nothing."""
    records: list[MetadataRecord] = []
    proposed = {each.feature: each.max_version_level for each in request.feature_updates}
    for update in request.feature_updates:
        try:
            check(context, update)
            check_dependencies(context, update, proposed)
        except RequestRefused as refused:
            return Result(
                response=UpdateFeaturesResponse(
                    error_code=refused.error, error_message=FAILED + refused.message
                )
            )
        if update.max_version_level != context.image.features.get(update.feature, 0):
            if update.feature == ELIGIBLE_LEADER_REPLICAS and update.max_version_level:
                records += min_isr_for_all(context)
                records += stale_elr_records(context)
            records.append(
                FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
            )
    response = UpdateFeaturesResponse(
        results=tuple(
            UpdatableFeatureResult(feature=each.feature) for each in request.feature_updates
        )
    )
    return Result(() if request.validate_only else records, response)


def check(context: Context, update: FeatureUpdateKey) -> None:
    """Raise RequestRefused if the update is not valid."""
    name, level = update.feature, update.max_version_level
    allowed = {each.value for each in UpgradeType}
    if update.upgrade_type not in allowed:
        raise refused(name, level, "The controller does not support the given upgrade type.")
    # Version 0 of the request has only the flag; its upgrade type is the default.
    kind = (
        UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType(update.upgrade_type)
    )
    if level < 0:
        raise refused(name, level, "A feature version cannot be less than 0.")
    check_supported(context, name, level)
    now = context.image.features.get(name, 0)
    if level < now and kind is UpgradeType.UPGRADE:
        raise refused(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > now and kind is not UpgradeType.UPGRADE:
        raise refused(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION and any(level < each <= now for each in CHANGED_THE_LOG):
        raise RequestRefused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid metadata.version {level}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if kind is UpgradeType.UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            ),
        )


def check_dependencies(
    context: Context, update: FeatureUpdateKey, proposed: Mapping[str, int]
) -> None:
    """Raise RequestRefused if a feature level needs a higher metadata.version than the one after
    this request, or if metadata.version would fall below the need of a finalized feature.

    `proposed` are the levels that the request names.
    """
    after = {**context.image.features, **proposed}
    metadata_version = after.get(METADATA_VERSION, 0)
    for (name, level), needed in NEEDED_METADATA_VERSION.items():
        if after.get(name, 0) >= level and metadata_version < needed:
            if update.feature not in (name, METADATA_VERSION):
                continue
            raise refused(
                name, after[name], f"It depends on metadata.version level {needed} or higher."
            )


def check_supported(context: Context, name: str, level: int) -> None:
    """Raise RequestRefused if this controller or a broker does not support the level."""
    supported = context.settings.supported_features.get(name)
    if supported is None:
        raise refused(name, level, f"Feature {name} not found.")
    check_range(name, level, f"Local controller {context.settings.node_id}", *supported)
    for broker_id in sorted(context.image.brokers):
        ranges = context.image.brokers[broker_id].features
        low, high = next(
            (
                (each.min_supported_version, each.max_supported_version)
                for each in ranges
                if each.name == name
            ),
            (0, 0),
        )
        check_range(name, level, f"Broker {broker_id}", low, high)


def check_range(name: str, level: int, who: str, low: int, high: int) -> None:
    """Raise RequestRefused if the level is outside the range of the node `who`."""
    if not low <= level <= high:
        text = f"only supports versions {low}-{high}" if high else "does not support this feature."
        raise refused(name, level, f"{who} {text}")


def refused(name: str, level: int, why: str) -> RequestRefused:
    """Return a RequestRefused with INVALID_UPDATE_VERSION."""
    text = f"Invalid update version {level} for feature {name}. {why}"
    return RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, text)
