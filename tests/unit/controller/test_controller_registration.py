"""ControllerRegistration: the record, the refusals, and the features that UpdateFeatures reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from quorate.quorum.controller.features import controller_registration
from quorate.quorum.controller.state.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quorate.quorum.metadata.image import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from quorate.quorum.metadata.records import (
    Endpoint,
    FeatureLevelRecord,
    FeatureRange,
    RegisterControllerRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.update_features import UpdateFeaturesResponse
from tests.unit.controller.harness import Driver, uuid
from tests.unit.controller.test_update_features import SAFE, ask, at_level, to

NEWEST = (7, 27)


def request(
    controller_id: int, levels: tuple[int, int] = NEWEST, *, incarnation: int = 1, **changes: Any
) -> ControllerRegistrationRequest:
    low, high = levels
    fields: dict[str, Any] = {
        "controller_id": controller_id,
        "incarnation_id": uuid(100 * controller_id + incarnation),
        "endpoints": (Endpoint(name="CONTROLLER", host=f"c{controller_id}", port=9093),),
        "features": (
            FeatureRange(
                name=METADATA_VERSION, min_supported_version=low, max_supported_version=high
            ),
        ),
    }
    return ControllerRegistrationRequest(**{**fields, **changes})


def register(driver: Driver, asked: ControllerRegistrationRequest) -> tuple[int, str]:
    response = driver.handle(asked)
    assert isinstance(response, ControllerRegistrationResponse)
    return response.error, response.message


def with_voters(driver: Driver, voters: Collection[int]) -> Driver:
    driver.controller._context.voter_ids = lambda: voters
    return driver


def why(response: UpdateFeaturesResponse) -> str:
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    return response.error_message or ""


def test_the_record_has_what_the_controller_said() -> None:
    driver = Driver()
    assert register(driver, request(3001)) == (0, "")
    assert driver.log[-1] == RegisterControllerRecord(
        controller_id=3001,
        incarnation_id=uuid(300_101),
        zk_migration_ready=False,
        end_points=(Endpoint(name="CONTROLLER", host="c3001", port=9093),),
        features=(
            FeatureRange(name=METADATA_VERSION, min_supported_version=7, max_supported_version=27),
        ),
    )
    assert driver.image.controllers[3001].incarnation_id == uuid(300_101)


def test_a_new_incarnation_replaces_the_old_and_a_repetition_writes_nothing() -> None:
    driver = Driver()
    register(driver, request(3001))
    end = len(driver.log)
    assert register(driver, request(3001)) == (0, "")
    assert len(driver.log) == end
    register(driver, request(3001, (7, 26), incarnation=2))
    assert len(driver.log) == end + 1
    assert driver.image.controllers[3001].incarnation_id == uuid(300_102)
    assert len(driver.image.controllers) == 1


def test_controllers_do_not_register_below_3_7_iv0() -> None:
    driver = at_level(14)
    error, message = register(driver, request(3001))
    assert error == ErrorCode.UNSUPPORTED_VERSION
    assert message == "The current MetadataVersion is too old to support controller registrations."
    assert register(at_level(15), request(3001)) == (0, "")


def test_requests_beyond_their_bounds_write_nothing(monkeypatch: Any) -> None:
    driver = Driver()
    end = len(driver.log)
    twice = (Endpoint(name="C", host="a", port=1), Endpoint(name="C", host="b", port=1))
    empty = (FeatureRange(name="f", min_supported_version=2, max_supported_version=1),)
    too_many = tuple(replace(twice[0], name=f"C{each}") for each in range(17))
    for changes in ({"endpoints": twice}, {"features": empty}, {"endpoints": too_many}):
        error, _ = register(driver, request(3001, **changes))
        assert error == ErrorCode.INVALID_REQUEST
    assert len(driver.log) == end
    monkeypatch.setattr(controller_registration, "MAX_CONTROLLERS", 1)
    assert register(driver, request(3001)) == (0, "")
    assert register(driver, request(3002))[0] == ErrorCode.INVALID_REQUEST
    assert register(driver, request(3001, incarnation=2)) == (0, "")


def test_every_registered_controller_must_support_the_level() -> None:
    driver = at_level(25)
    register(driver, request(3001, (7, 26)))
    assert "Controller 3001 only supports versions 7-26" in why(ask(driver, to(27)))
    assert ask(driver, to(26)).error_code == 0
    register(driver, request(3001, incarnation=2))
    assert ask(driver, to(27)).error_code == 0


def test_the_own_registration_does_not_count_but_the_own_release_does() -> None:
    """The active controller may still have the registration of its earlier process."""
    driver = at_level(25)
    register(driver, request(driver.settings.node_id, (7, 26)))
    assert ask(driver, to(27)).error_code == 0
    assert "Local controller 3000 only supports" in why(ask(driver, to(28)))


def test_a_voter_that_has_not_registered_may_not_support_the_level() -> None:
    driver = with_voters(at_level(25), (3000, 3001, 3002))
    register(driver, request(3001))
    assert "controller 3002 has not registered, and may not support this feature" in why(
        ask(driver, to(27))
    )
    register(driver, request(3002))
    assert ask(driver, to(27)).error_code == 0


def test_below_3_7_iv0_only_brokers_and_the_own_release_count() -> None:
    """No controller can register there, and the cluster must be able to leave the level."""
    driver = with_voters(at_level(14), (3000, 3001))
    assert ask(driver, to(27)).error_code == 0


def test_a_feature_that_a_node_does_not_name_is_not_supported() -> None:
    driver = with_voters(at_level(27), (3000, 3001))
    register(driver, request(3001))
    elr = to(1, name=ELIGIBLE_LEADER_REPLICAS)
    assert "Controller 3001 does not support this feature." in why(ask(driver, elr))
    assert ELIGIBLE_LEADER_REPLICAS not in driver.image.features
    driver.append([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1)])
    assert ask(driver, to(0, SAFE, ELIGIBLE_LEADER_REPLICAS)).error_code == 0, "0 needs no support"


def test_the_dependency_has_kafkas_words() -> None:
    driver = at_level(22)
    text = why(ask(driver, to(1, name=ELIGIBLE_LEADER_REPLICAS)))
    assert (
        "eligible.leader.replicas.version could not be set to 1 because it depends on "
        "metadata.version level 23" in text
    )
