"""UpdateFeatures: upgrades, downgrades, and each refusal (KIP-584, KIP-778)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.quorum.controller.features.update_features import UpgradeType
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.metadata.records import FeatureLevelRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.unit.controller.harness import Driver

UPGRADE, SAFE, UNSAFE = (
    UpgradeType.UPGRADE,
    UpgradeType.SAFE_DOWNGRADE,
    UpgradeType.UNSAFE_DOWNGRADE,
)


def at_level(level: int) -> Driver:
    driver = Driver()
    driver.start(1, 2)
    driver.append([FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)])
    return driver


def ask(
    driver: Driver, *updates: FeatureUpdateKey, validate_only: bool = False
) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
    response = driver.handle(request)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def to(level: int, kind: int = UPGRADE, name: str = METADATA_VERSION) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)


def level_of(driver: Driver) -> int:
    return driver.image.features[METADATA_VERSION]


def test_up_and_down_where_the_log_stays_what_it_is() -> None:
    driver = at_level(23)
    assert ask(driver, to(27)).error_code == ErrorCode.NONE
    assert level_of(driver) == 27
    response = ask(driver, to(24, SAFE))
    assert [(each.feature, each.error_code) for each in response.results] == [(METADATA_VERSION, 0)]
    assert level_of(driver) == 24
    assert ask(driver, to(23, UNSAFE)).error_code == ErrorCode.NONE
    assert ask(driver, to(23)).error_code == ErrorCode.NONE, "it is there already"
    assert level_of(driver) == 23


def test_a_dry_run_says_the_same_and_writes_nothing() -> None:
    driver = at_level(23)
    assert ask(driver, to(27), validate_only=True).error_code == ErrorCode.NONE
    assert ask(driver, to(7, SAFE), validate_only=True).error_code != ErrorCode.NONE
    assert level_of(driver) == 23


REFUSED = {
    "down without saying so": (to(24), "Can't downgrade the version of this feature without"),
    "up with a downgrade": (to(27, SAFE), "Can't downgrade to a newer version."),
    "not supported": (to(28), "Local controller 3000 only supports versions 23-27"),
    "too old": (to(22, SAFE), "only supports versions 23-27"),
    "disabled": (to(0, SAFE), "only supports versions 23-27"),
    "negative": (to(-1, SAFE), "A feature version cannot be less than 0."),
    "unknown type": (to(27, 9), "does not support the given upgrade type"),
    "unknown feature": (
        to(1, UPGRADE, "magic"),
        "Local controller 3000 does not support this feature.",
    ),
    "level 0 of an unknown feature": (to(0, UPGRADE, "magic"), "Feature magic not found."),
}


@pytest.mark.parametrize(("update", "why"), REFUSED.values(), ids=REFUSED)
def test_refused(update: FeatureUpdateKey, why: str) -> None:
    driver = at_level(25)
    response = ask(driver, to(26), update)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.results == ()
    assert response.error_message is not None
    assert response.error_message.startswith("The update failed for all features since")
    assert why in response.error_message
    assert level_of(driver) == 25, "all or nothing"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (SAFE, "it might delete metadata information"),
        (UNSAFE, "Unsafe metadata downgrade is not supported"),
    ],
)
def test_no_downgrade_passes_a_level_that_changed_the_log(kind: UpgradeType, why: str) -> None:
    """Only a release that supports levels below 23 can be asked for one."""
    driver = Driver(replace(Driver().settings, supported_features={METADATA_VERSION: (7, 27)}))
    driver.start(1)
    driver.append([FeatureLevelRecord(name=METADATA_VERSION, feature_level=25)])
    assert why in (ask(driver, to(22, kind)).error_message or "")
    assert level_of(driver) == 25


def test_every_broker_must_support_the_level() -> None:
    driver = at_level(25)
    old = driver.image.brokers[2]
    ranges = tuple(replace(each, max_supported_version=26) for each in old.features)
    brokers = driver.image.brokers.insert(2, replace(old, features=ranges))
    driver.controller._context.image = driver.image._replace(brokers=brokers)
    response = ask(driver, to(27))
    assert "Broker 2 only supports versions 7-26" in (response.error_message or "")
    assert ask(driver, to(26)).error_code == ErrorCode.NONE


def test_version_0_has_a_flag_for_downgrades() -> None:
    driver = at_level(25)
    update = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=24, allow_downgrade=True)
    assert ask(driver, update).error_code == ErrorCode.NONE
    assert level_of(driver) == 24


def test_the_last_update_of_a_feature_counts() -> None:
    """Each of them was compared with the present level, and the first one was written, too."""
    driver = at_level(27)
    assert ask(driver, to(25, SAFE), to(27)).error_code == ErrorCode.NONE
    assert level_of(driver) == 27
    assert ask(driver, to(27), to(25, SAFE)).error_code == ErrorCode.NONE
    assert level_of(driver) == 25


def test_an_unchanged_kraft_version_is_skipped() -> None:
    """FeatureCommand's --release-version names every feature of the release. A changed
    kraft.version never reaches this rule."""
    driver = at_level(23)
    response = ask(driver, to(27), to(1, name="kraft.version"))
    assert response.error_code == ErrorCode.NONE
    assert [each.feature for each in response.results] == [METADATA_VERSION, "kraft.version"]
    assert level_of(driver) == 27
    assert "kraft.version" not in driver.image.features
