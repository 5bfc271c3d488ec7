"""UpdateFeatures: an administrator changes the cluster's feature levels (KIP-584, KIP-778).

A request changes all of its features or none. This controller, every registered broker, and every
registered controller must support a new level. Each voter must be registered, because the active
controller cannot know what another one supports. Below REGISTRATION_SINCE controllers do not
register, and only the other nodes are checked. A node that has replayed a level that it does not
support stops (`quorum/node/feature_support.py`), so these checks keep the cluster whole.

A level is lowered only if the request permits a downgrade. metadata.version may only pass
levels that did not change the contents of the metadata log. No code rewrites the log, so an unsafe
downgrade is refused, as in Kafka.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from quorate.quorum.controller.configs.min_isr_configs import min_isr_for_all
from quorate.quorum.controller.features.controller_registration import registrations_supported
from quorate.quorum.controller.partitions.eligible_leaders import stale_elr_records
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.result import RequestRefused, Result
from quorate.quorum.metadata.image import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from quorate.quorum.metadata.records import FeatureLevelRecord, FeatureRange, MetadataRecord
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
KRAFT_VERSION = "kraft.version"
"""The feature whose level is in Raft's control records."""
DISABLED = (0, 0)
"""The range of a feature that a node does not name."""
FAILED = "The update failed for all features since the following feature had an error: "


class UpgradeType(enum.IntEnum):
    """Kafka's codes for the direction of a change that a request permits."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(context: Context, request: UpdateFeaturesRequest) -> Result:
    """Change feature levels. The first update that is not valid fails all of them. A level that is
    current gets no record. A request with `validate_only` writes nothing. Raft decides changes of
    kraft.version (`quorum/node/controller/voter_admin.py`), so here it is unchanged, and is
    skipped. If a feature is named twice, its last update counts, as in Kafka."""
    records: list[MetadataRecord] = []
    last = {each.feature: each for each in request.feature_updates}
    updates = [each for name, each in last.items() if name != KRAFT_VERSION]
    proposed = {each.feature: each.max_version_level for each in updates}
    for update in updates:
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
                name,
                after[name],
                f"{name} could not be set to {after[name]} because it depends on "
                f"{METADATA_VERSION} level {needed}",
            )


def check_supported(context: Context, name: str, level: int) -> None:
    """Raise RequestRefused if this controller, a broker or another controller does not support the
    level, or if a voter has not registered. Fenced brokers count, because they may return."""
    image, me = context.image, context.settings.node_id
    supported = context.settings.supported_features.get(name, DISABLED)
    check_range(name, level, f"Local controller {me}", supported)
    for broker_id in sorted(image.brokers):
        check_range(
            name, level, f"Broker {broker_id}", range_of(name, image.brokers[broker_id].features)
        )
    if registrations_supported(image):
        others = sorted(set(image.controllers) - {me})
        for node_id in others:
            supported = range_of(name, image.controllers[node_id].features)
            check_range(name, level, f"Controller {node_id}", supported)
        for node_id in sorted(context.voter_ids()):
            if node_id != me and node_id not in image.controllers:
                why = f"controller {node_id} has not registered, and may not support this feature"
                raise refused(name, level, why)
    if name not in context.settings.supported_features:
        raise refused(name, level, f"Feature {name} not found.")


def range_of(name: str, features: Sequence[FeatureRange]) -> tuple[int, int]:
    """Return the range of a registration for a feature, DISABLED if it does not name it."""
    for each in features:
        if each.name == name:
            return each.min_supported_version, each.max_supported_version
    return DISABLED


def check_range(name: str, level: int, who: str, supported: tuple[int, int]) -> None:
    """Raise RequestRefused if the level is outside of the range `supported` of the node `who`."""
    low, high = supported
    if not low <= level <= high:
        text = f"only supports versions {low}-{high}" if high else "does not support this feature."
        raise refused(name, level, f"{who} {text}")


def refused(name: str, level: int, why: str) -> RequestRefused:
    """Return a RequestRefused with INVALID_UPDATE_VERSION."""
    text = f"Invalid update version {level} for feature {name}. {why}"
    return RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, text)
