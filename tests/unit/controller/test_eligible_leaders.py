"""Eligible leader replicas (KIP-966 part 1): the history of one partition with replicas 1, 2, 3 and
min.insync.replicas 2, row by row, and the rules for configs and features."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.controller.partitions.unclean_elections import Strategy, strategy_of
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from quorate.quorum.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.unit.controller.harness import CLUSTER_ID, Driver

MIN_ISR = "min.insync.replicas"
SET, DELETE = 0, 1
BROKER, TOPIC = 4, 2
State = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]
"""Leader, ISR, ELR, last known leader, leader recovery state."""


def started(*, min_isr: int = 2, elr: bool = True, unclean: bool = False) -> Driver:
    """Return a driver with brokers 1, 2 and 3, and topic `t` whose partition 0 they replicate."""
    driver = Driver(elr=elr)
    driver.start(1, 2, 3)
    configs = {MIN_ISR: str(min_isr), "unclean.leader.election.enable": str(unclean).lower()}
    driver.create("t", (1, 2, 3), configs=configs)
    return driver


def state(driver: Driver) -> State:
    partition = driver.partition("t")
    return (
        partition.leader,
        partition.isr,
        partition.elr,
        partition.last_known_elr,
        partition.leader_recovery_state,
    )


def fence(driver: Driver, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        driver.heartbeat(broker_id, want_fence=True)


def unfence(driver: Driver, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        driver.heartbeat(broker_id)


def restart(driver: Driver, broker_id: int, *, clean: bool) -> None:
    """Register the next incarnation of a broker, whose connection is lost. It is fenced."""
    driver.connect(broker_id)
    driver.take(driver.controller.connection_lost(broker_id, driver.broker(broker_id).epoch))
    epoch = driver.broker(broker_id).epoch if clean else -1
    driver.register(broker_id, incarnation=len(driver.log), previous_broker_epoch=epoch)


def shrink(driver: Driver, *isr: int, reported: int = 2) -> None:
    result = driver.propose_isr("t", isr, cause=Cause.ISR_SHRINK_LAG, min_insync_replicas=reported)
    assert result.error == 0


# ----------------------------------------------------------------------- the rows of the reference


def test_an_isr_with_min_isr_members_has_no_elr() -> None:
    driver = started()
    fence(driver, 3)
    assert state(driver) == (1, (1, 2), (), (), RECOVERED)


def test_those_that_leave_an_isr_below_min_isr_are_eligible() -> None:
    driver = started()
    shrink(driver, 1)
    assert state(driver) == (1, (1,), (2, 3), (), RECOVERED)


def test_the_leader_may_not_have_replayed_a_higher_min_isr_yet() -> None:
    """The leader applies the answer before it replays the config, so it may commit alone."""
    driver = started()
    shrink(driver, 1, reported=1)
    assert state(driver) == (1, (1,), (), (), RECOVERED)


def test_a_member_of_the_elr_leads_cleanly_when_the_isr_is_empty() -> None:
    driver = started()
    shrink(driver, 1)
    fence(driver, 1)
    assert state(driver) == (2, (2,), (1, 3), (), RECOVERED)
    assert driver.controller.index.elr_elections == 1
    assert driver.controller.index.unclean_elections == 0


def alone(driver: Driver) -> Driver:
    """Leave replica 1 alone in the ISR, and replica 2, which is fenced, in the ELR."""
    fence(driver, 3)
    fence(driver, 2)
    assert state(driver) == (1, (1,), (2,), (), RECOVERED)
    return driver


def leaderless(driver: Driver) -> Driver:
    alone(driver)
    fence(driver, 1)
    assert state(driver) == (NO_LEADER, (), (1, 2), (1,), RECOVERED)
    return driver


def test_the_elr_and_the_last_leader_are_known_when_no_replica_can_lead() -> None:
    leaderless(started())


def test_a_member_of_the_elr_leads_cleanly_when_it_returns() -> None:
    driver = leaderless(started())
    unfence(driver, 3)
    assert state(driver)[0] == NO_LEADER, "it is not eligible"
    unfence(driver, 2)
    assert state(driver) == (2, (2,), (1,), (), RECOVERED)


def test_kafka_18106_an_unclean_stop_ends_the_eligibility() -> None:
    driver = leaderless(started())
    restart(driver, 2, clean=False)
    assert state(driver) == (NO_LEADER, (), (1,), (1,), RECOVERED)
    unfence(driver, 2)
    assert state(driver)[0] == NO_LEADER
    restart(driver, 1, clean=True)
    assert state(driver) == (NO_LEADER, (), (1,), (1,), RECOVERED)
    unfence(driver, 1)
    assert state(driver) == (1, (1,), (), (), RECOVERED)


def test_kafka_18106_an_unclean_stop_of_a_leader_hands_over_to_the_elr() -> None:
    driver = started()
    shrink(driver, 1)
    restart(driver, 1, clean=False)
    assert state(driver) == (2, (2,), (3,), (), RECOVERED)


def test_the_last_leader_leads_again_when_no_replica_is_eligible() -> None:
    driver = leaderless(started())
    restart(driver, 1, clean=False)
    restart(driver, 2, clean=False)
    assert state(driver) == (NO_LEADER, (), (), (1,), RECOVERED)
    unfence(driver, 3)
    unfence(driver, 2)
    assert state(driver)[0] == NO_LEADER, "only the last leader may"
    unfence(driver, 1)
    assert state(driver) == (1, (1,), (), (), RECOVERING)
    assert driver.log[-1].cause == Cause.LAST_KNOWN_LEADER  # type: ignore[attr-defined]
    assert driver.controller.index.unclean_elections == 1


def test_any_replica_leads_uncleanly_if_the_topic_allows_it() -> None:
    driver = leaderless(started(unclean=True))
    restart(driver, 1, clean=False)
    restart(driver, 2, clean=False)
    unfence(driver, 3)
    assert state(driver) == (3, (3,), (), (), RECOVERING)


def test_an_isr_that_reaches_min_isr_again_clears_the_elr() -> None:
    driver = leaderless(started())
    unfence(driver, 2, 3)
    assert state(driver) == (2, (2,), (1,), (), RECOVERED)
    assert driver.propose_isr("t", (2, 3), min_insync_replicas=2).error == 0
    assert state(driver) == (2, (2, 3), (), (), RECOVERED)


def test_without_elr_the_last_member_stays_in_the_isr() -> None:
    driver = started(elr=False)
    fence(driver, 3, 2, 1)
    assert state(driver) == (NO_LEADER, (1,), (), (), RECOVERED)


def test_a_controlled_shutdown_of_the_last_member_ends() -> None:
    driver = alone(started())
    assert not driver.heartbeat(1, want_shut_down=True).should_shut_down
    assert state(driver) == (NO_LEADER, (), (1, 2), (1,), RECOVERED)
    assert driver.heartbeat(1, want_shut_down=True).should_shut_down


def test_the_min_isr_is_at_most_the_number_of_replicas() -> None:
    driver = Driver(elr=True)
    driver.start(1)
    driver.create("t", (1,), configs={MIN_ISR: "3"})
    assert state(driver) == (1, (1,), (), (), RECOVERED)
    fence(driver, 1)
    assert state(driver) == (NO_LEADER, (), (1,), (1,), RECOVERED)
    unfence(driver, 1)
    assert state(driver) == (1, (1,), (), (), RECOVERED)


# --------------------------------------------------------------------- brokers and administrators


def test_an_unregistered_broker_stays_eligible_until_it_registers_again() -> None:
    driver = leaderless(started())
    driver.handle(UnregisterBrokerRequest(broker_id=2))
    assert state(driver) == (NO_LEADER, (), (1, 2), (1,), RECOVERED)
    driver.register(2, incarnation=7)
    assert state(driver)[2] == (1,), "nothing is known about its last stop"


def test_kafka_18635_an_unknown_last_epoch_is_an_unclean_stop() -> None:
    driver = leaderless(started())
    restart(driver, 2, clean=False)
    assert state(driver)[2] == (1,)


def test_an_administrator_elects_from_the_elr_before_any_other_replica() -> None:
    driver = started()
    shrink(driver, 1)
    fence(driver, 2, 3, 1)
    unfence(driver, 3)
    assert state(driver)[0] == 3
    driver = leaderless(started())
    unfence(driver, 3)
    asked = (TopicPartitions(topic="t", partitions=(0,)),)
    driver.handle(ElectLeadersRequest(election_type=1, topic_partitions=asked, timeout_ms=1))
    assert state(driver) == (3, (3,), (), (), RECOVERING)


def reassign(driver: Driver, replicas: tuple[int, ...] | None) -> int:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name="t", partitions=(partition,))
    response = driver.handle(AlterPartitionReassignmentsRequest(timeout_ms=1, topics=(topic,)))
    return int(response.responses[0].partitions[0].error_code)


def test_a_cancelled_reassignment_keeps_the_elr_without_what_it_added() -> None:
    driver = started()
    driver.start(4)
    assert reassign(driver, (4, 2, 3)) == 0
    assert driver.propose_isr("t", (1, 2, 4), min_insync_replicas=2).error == 0
    fence(driver, 3, 2, 1)
    assert state(driver) == (4, (4,), (1,), (), RECOVERED)
    assert reassign(driver, None) == 0
    partition = driver.partition("t")
    assert (partition.replicas, partition.adding) == ((2, 3, 1), ())
    assert state(driver) == (NO_LEADER, (), (1,), (), RECOVERED)
    unfence(driver, 1)
    assert state(driver) == (1, (1,), (), (), RECOVERED)


def test_a_new_reassignment_keeps_a_replica_that_alone_is_eligible() -> None:
    driver = started(min_isr=1)
    driver.start(4)
    assert reassign(driver, (4, 2, 3)) == 0
    assert driver.propose_isr("t", (1, 4), min_insync_replicas=1).error == 0
    fence(driver, 1, 4)
    assert state(driver) == (NO_LEADER, (), (4,), (4,), RECOVERED)
    assert reassign(driver, (1, 2, 3)) == 0
    assert 4 in driver.partition("t").replicas
    unfence(driver, 4)
    assert state(driver)[:2] == (4, (4,))


# ------------------------------------------------------------------------------------- the configs


def alter(driver: Driver, resource: int, name: str, key: str, value: str | None) -> int:
    config = IncrementalAlterableConfig(
        name=key, config_operation=DELETE if value is None else SET, value=value
    )
    asked = IncrementalAlterConfigsResource(
        resource_type=resource, resource_name=name, configs=(config,)
    )
    response = driver.handle(
        IncrementalAlterConfigsRequest(resources=(asked,), validate_only=False)
    )
    return int(response.responses[0].error_code)


@pytest.mark.parametrize(
    ("resource", "name", "value"),
    [(TOPIC, "t", "1"), (TOPIC, "t", None), (TOPIC, "t", "3"), (BROKER, "", "3")],
)
def test_kafka_16540_a_change_of_min_isr_clears_the_elr(
    resource: int, name: str, value: str | None
) -> None:
    driver = leaderless(started())
    epoch = driver.partition("t").partition_epoch
    assert alter(driver, resource, name, MIN_ISR, value) == 0
    assert driver.log[-1] == ClearElrRecord(topic_name="t")
    assert state(driver) == (NO_LEADER, (), (), (), RECOVERED)
    assert driver.partition("t").partition_epoch == epoch + 1
    unfence(driver, 1, 2)
    assert state(driver)[0] == NO_LEADER, "only an unclean election can help now"


def test_other_configs_do_not_clear_the_elr() -> None:
    driver = leaderless(started())
    assert alter(driver, TOPIC, "t", "retention.ms", "5") == 0
    assert state(driver)[2] == (1, 2)


def test_a_deletion_that_changes_nothing_does_not_clear_the_elr() -> None:
    """Only an unclean election could have helped the partition afterwards. Kafka refuses it."""
    driver = leaderless(started())
    assert alter(driver, BROKER, "1", MIN_ISR, None) == ErrorCode.INVALID_CONFIG
    assert state(driver)[2] == (1, 2)
    unfence(driver, 1)
    assert state(driver)[0] == 1


def test_without_an_elr_a_broker_config_clears_nothing() -> None:
    driver = started()
    assert alter(driver, BROKER, "", MIN_ISR, "2") == 0
    assert not any(isinstance(each, ClearElrRecord) for each in driver.log)


def test_min_isr_stays_cluster_wide_while_elr_is_on() -> None:
    driver = started()
    assert driver.image.config(BROKER, "")[MIN_ISR] == "1"
    assert alter(driver, BROKER, "1", MIN_ISR, "2") == ErrorCode.INVALID_CONFIG
    assert alter(driver, BROKER, "", MIN_ISR, None) == ErrorCode.INVALID_CONFIG
    without = started(elr=False)
    assert alter(without, BROKER, "1", MIN_ISR, "2") == 0
    assert alter(without, BROKER, "", MIN_ISR, None) == 0


# ------------------------------------------------------------------------------------ the feature


def update(driver: Driver, level: int, kind: int = 1, name: str = ELIGIBLE_LEADER_REPLICAS) -> str:
    key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    response = driver.handle(UpdateFeaturesRequest(feature_updates=(key,)))
    return response.error_message or ""


def test_a_new_cluster_has_elr_and_a_cluster_wide_min_isr() -> None:
    driver = Driver(
        ControllerSettings(cluster_id=CLUSTER_ID, node_id=3000, topic_defaults={MIN_ISR: 2})
    )
    assert dict(driver.image.features) == {METADATA_VERSION: 27, ELIGIBLE_LEADER_REPLICAS: 1}
    assert driver.image.config(BROKER, "") == {MIN_ISR: "2"}


def test_enabling_elr_makes_min_isr_cluster_wide_in_the_same_batch() -> None:
    driver = started(elr=False)
    assert alter(driver, BROKER, "1", MIN_ISR, "3") == 0
    length = len(driver.log)
    assert update(driver, 1) == ""
    assert driver.log[length:] == [
        ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_ISR, value="1"),
        ConfigRecord(resource_type=BROKER, resource_name="1", name=MIN_ISR, value=None),
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
    ]


def test_elr_can_be_enabled_live() -> None:
    driver = started(elr=False)
    fence(driver, 3, 2)
    assert update(driver, 1) == ""
    assert state(driver) == (1, (1,), (), (), RECOVERED), "the ELR begins empty"
    fence(driver, 1)
    assert state(driver) == (NO_LEADER, (), (1,), (1,), RECOVERED)


def test_a_leaderless_partition_keeps_its_last_leader_when_elr_is_enabled() -> None:
    driver = started(elr=False)
    fence(driver, 3, 2, 1)
    assert update(driver, 1) == ""
    restart(driver, 1, clean=False)
    assert state(driver) == (NO_LEADER, (), (), (1,), RECOVERED)
    unfence(driver, 1)
    assert state(driver) == (1, (1,), (), (), RECOVERING)


def test_elr_needs_metadata_version_23() -> None:
    driver = started(elr=False)
    driver.append([FeatureLevelRecord(name=METADATA_VERSION, feature_level=22)])
    assert "depends on metadata.version level 23" in update(driver, 1)
    assert update(driver, 27, name=METADATA_VERSION) == ""
    assert update(driver, 1) == ""


def disabled(prepare: Callable[[Driver], Driver]) -> Driver:
    driver = prepare(started())
    assert update(driver, 0, kind=2) == ""
    assert ELIGIBLE_LEADER_REPLICAS not in driver.image.features
    return driver


def test_after_a_downgrade_the_elr_of_a_leaderless_partition_is_used_once() -> None:
    driver = disabled(leaderless)
    restart(driver, 1, clean=False)
    assert state(driver)[2] == (2,)
    unfence(driver, 1)
    assert state(driver)[0] == NO_LEADER, "it may have lost records"
    unfence(driver, 2)
    assert state(driver) == (2, (2,), (), (), RECOVERED)


def test_after_a_downgrade_the_elr_of_a_led_partition_is_not_used() -> None:
    """Nothing clears the ELR while the feature is off, so the leader may commit alone."""
    driver = disabled(alone)
    alter(driver, TOPIC, "t", MIN_ISR, "1")
    unfence(driver, 2)
    fence(driver, 1)
    assert state(driver) == (NO_LEADER, (1,), (), (), RECOVERED)


def test_an_elr_from_before_a_downgrade_is_not_used_after_an_upgrade() -> None:
    """The leader has committed records alone while the feature was off, so replica 2 lacks them."""
    driver = disabled(alone)
    alter(driver, TOPIC, "t", MIN_ISR, "1")
    assert update(driver, 1) == ""
    assert state(driver) == (1, (1,), (), (), RECOVERED)
    unfence(driver, 2)
    fence(driver, 1)
    assert state(driver) == (NO_LEADER, (), (1,), (1,), RECOVERED)


def test_a_leaderless_partition_keeps_its_elr_over_a_downgrade_and_an_upgrade() -> None:
    driver = disabled(leaderless)
    assert update(driver, 1) == ""
    unfence(driver, 2)
    assert state(driver) == (2, (2,), (1,), (), RECOVERED)


@pytest.mark.parametrize(
    ("key", "text"),
    [("unclean.leader.election.enable", " true "), ("unclean.recovery.strategy", " aggressive")],
)
def test_blanks_around_a_config_of_elections_do_not_count(key: str, text: str) -> None:
    """They are accepted, and once stopped every controller that had to fence a broker."""
    driver = started()
    assert alter(driver, TOPIC, "t", key, text) == 0
    leaderless(driver)
    topic = driver.image.config(TOPIC, "t")
    assert topic[key] == text
    assert strategy_of(driver.controller._context, "t") is Strategy.AGGRESSIVE


def test_a_snapshot_restores_the_elr() -> None:
    from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records

    image = leaderless(started()).image
    again = image_of_snapshot(snapshot_records(image), image.last, image.last_timestamp_ms)
    topic_id = image.topic_id("t")
    restored = again.partition(topic_id, 0)
    assert isinstance(restored, Partition)
    assert restored == image.partition(topic_id, 0) and restored.elr == (1, 2)
