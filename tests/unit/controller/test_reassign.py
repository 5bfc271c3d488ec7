"""Reassignment: the rules, each refusal, and complete histories with a failure at every step."""

from __future__ import annotations

import random
from typing import Any

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import RECOVERING, PartitionChangeRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.unit.controller.harness import Driver

Ids = tuple[int, ...]


def ask(
    driver: Driver, *asked: tuple[int, Ids | None], topic: str = "t", resizable: bool = True
) -> AlterPartitionReassignmentsResponse:
    response = driver.handle(
        AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=resizable,
            topics=(
                ReassignableTopic(
                    name=topic,
                    partitions=tuple(
                        ReassignablePartition(partition_index=number, replicas=replicas)
                        for number, replicas in asked
                    ),
                ),
            ),
        )
    )
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    return response


def reassign(driver: Driver, replicas: Ids | None, **options: Any) -> tuple[int, str | None]:
    result = ask(driver, (0, replicas), **options).responses[0].partitions[0]
    return result.error_code, result.error_message


def six_brokers(*replicas: int) -> Driver:
    driver = Driver()
    driver.start(1, 2, 3, 4, 5, 6)
    driver.create("t", replicas or (1, 2, 3))
    return driver


def unclean_allowed() -> object:
    return configs.IncrementalAlterConfigsRequest(
        resources=(
            configs.IncrementalAlterConfigsResource(
                resource_type=2,
                resource_name="t",
                configs=(
                    configs.IncrementalAlterableConfig(
                        name="unclean.leader.election.enable", config_operation=0, value="true"
                    ),
                ),
            ),
        ),
        validate_only=False,
    )


def lists(partition: Partition) -> tuple[Ids, Ids, Ids]:
    return partition.replicas, partition.removing, partition.adding


def catch_up(driver: Driver) -> None:
    """Let every live replica fetch up to the log end, in the order of brokers. Each expansion is a
    separate proposal."""
    for _ in range(10):
        partition = driver.partition("t")
        missing = [
            each
            for each in sorted(partition.replicas)
            if each not in partition.isr and driver.broker(each).active
        ]
        if partition.leader < 0 or not missing:
            return
        driver.propose_isr("t", (*partition.isr, missing[0]))


def stay_silent(driver: Driver, broker_id: int) -> None:
    """Let this broker send no heartbeat for longer than a session. The others continue."""
    for _ in range(10):
        for each in driver.image.broker_ids():
            if each != broker_id and not driver.broker(each).fenced:
                driver.heartbeat(each)
        driver.run_until(driver.now_ms + 1000)


def die(driver: Driver, broker_id: int) -> None:
    stay_silent(driver, broker_id)
    assert driver.broker(broker_id).fenced


def come_back(driver: Driver, broker_id: int) -> None:
    """Restart the broker after its old session has ended. A new controller may have given it
    another one."""
    stay_silent(driver, broker_id)
    driver.register(broker_id, incarnation=len(driver.log))
    assert not driver.heartbeat(broker_id).fenced


def take_over(driver: Driver) -> None:
    """Let the active controller die. A new one continues, which knows only the log."""
    controller = Controller(driver.settings, random.Random(2))
    controller.loaded(driver.image)
    image = driver.image
    driver.controller = controller
    driver.take(controller.activate(image, now_ms=driver.now_ms, next_offset=len(driver.log)))
    for each in image.broker_ids():
        if not driver.broker(each).fenced:
            driver.heartbeat(each)


def story(driver: Driver) -> list[str]:
    return [each.cause for each in driver.log if isinstance(each, PartitionChangeRecord)]


def test_from_123_to_456() -> None:
    driver = six_brokers()
    assert reassign(driver, (4, 5, 6)) == (ErrorCode.NONE, None)
    partition = driver.partition("t")
    assert lists(partition) == ((4, 5, 6, 1, 2, 3), (1, 2, 3), (4, 5, 6))
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1, 2, 3), 0)
    assert driver.propose_isr("t", (1, 2, 3, 4)).error == ErrorCode.NONE
    assert driver.propose_isr("t", (1, 2, 3, 4, 5)).isr == (1, 2, 3, 4, 5)
    # Completion takes the leadership from the sender: written, and answered with an error.
    assert driver.propose_isr("t", (1, 2, 3, 4, 5, 6)).error == ErrorCode.NEW_LEADER_ELECTED
    partition = driver.partition("t")
    assert lists(partition) == ((4, 5, 6), (), ())
    assert (partition.leader, partition.isr, partition.leader_epoch) == (4, (4, 5, 6), 1)
    assert len(partition.directories) == 3
    assert story(driver) == [
        Cause.REASSIGNMENT_START,
        Cause.REASSIGNMENT_STEP,
        Cause.REASSIGNMENT_STEP,
        Cause.REASSIGNMENT_COMPLETE,
    ]
    assert reassign(driver, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize("elr", [False, True], ids=["without ELR", "with ELR"])
def test_the_leader_after_a_reassignment_is_no_unclean_one(elr: bool) -> None:
    """KAFKA-19212: the new leader was not in the ISR before the record that completes it."""
    driver = Driver(elr=elr)
    driver.start(1, 2, 3, 4)
    driver.create("t", (1, 2), configs={"min.insync.replicas": "2"})
    reassign(driver, (4, 3))
    driver.propose_isr("t", (1, 2, 3), min_insync_replicas=2)
    assert 4 not in driver.partition("t").isr
    driver.propose_isr("t", (1, 2, 3, 4), min_insync_replicas=2)
    assert driver.leader_and_isr("t") == (4, (3, 4))
    index = driver.controller.index
    assert (index.unclean_elections, index.elr_elections) == (0, 0)


@pytest.mark.parametrize("victim", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_it_completes_whoever_dies_after_any_step(after: int, victim: int) -> None:
    """Victim 0 is the active controller. A broker that died restarts later. In the end the whole
    target is in sync, and the removed replicas are gone."""
    driver = six_brokers()
    if after:
        reassign(driver, (4, 5, 6))
    for joining in (4, 5, 6)[: max(0, after - 1)]:
        driver.propose_isr("t", (*driver.partition("t").isr, joining))
    if victim:
        die(driver, victim)
    else:
        take_over(driver)
    if after == 0:
        reassign(driver, (4, 5, 6))
    assert driver.partition("t").leader > 0, "five brokers are alive"
    catch_up(driver)
    partition = driver.partition("t")
    if victim in (4, 5, 6) and after < 4:
        assert partition.reassigning and victim not in partition.isr
    if victim:
        come_back(driver, victim)
        catch_up(driver)
    partition = driver.partition("t")
    assert lists(partition) == ((4, 5, 6), (), ())
    assert set(partition.isr) == {4, 5, 6} and partition.leader in (4, 5, 6)
    told = story(driver)
    assert told.count(Cause.REASSIGNMENT_START) == told.count(Cause.REASSIGNMENT_COMPLETE) == 1
    assert told.index(Cause.REASSIGNMENT_START) < told.index(Cause.REASSIGNMENT_COMPLETE)
    assert not driver.controller._context.index.reassigning


def test_all_original_replicas_die_after_the_new_ones_joined() -> None:
    driver = six_brokers()
    reassign(driver, (4, 5, 6))
    driver.propose_isr("t", (1, 2, 3, 4))
    for victim in (1, 2, 3):
        die(driver, victim)
    assert driver.leader_and_isr("t") == (4, (4,))
    catch_up(driver)
    assert lists(driver.partition("t")) == ((4, 5, 6), (), ())


def test_a_fence_completes_what_waited_for_the_fenced() -> None:
    """Replica 2 is outside the ISR and stays. When replica 3 leaves by reassignment, none is added.
    The reassignment completes as soon as all staying replicas are in sync."""
    driver = six_brokers()
    driver.propose_isr("t", (1, 3), cause=Cause.ISR_SHRINK_LAG)
    reassign(driver, (1, 2))
    assert lists(driver.partition("t")) == ((1, 2, 3), (3,), ())
    driver.propose_isr("t", (1, 3, 2))
    assert lists(driver.partition("t")) == ((1, 2), (), ())
    assert driver.leader_and_isr("t") == (1, (1, 2))
    assert driver.partition("t").leader_epoch == 1, "a replica left: fetches of it are refused"


@pytest.mark.parametrize(
    ("target", "replicas", "leader"),
    [
        ((1, 2), (1, 2), 1),
        ((3, 2), (3, 2), 3),
        ((3, 2, 1), (3, 2, 1), 1),
        ((1, 2, 3), (1, 2, 3), 1),
    ],
)
def test_what_needs_no_new_replica_is_done_at_once(target: Ids, replicas: Ids, leader: int) -> None:
    driver = six_brokers()
    assert reassign(driver, target)[0] == ErrorCode.NONE
    partition = driver.partition("t")
    assert lists(partition) == (replicas, (), ())
    assert partition.leader == leader


def test_a_running_one_is_overridden_from_the_original() -> None:
    driver = six_brokers(3, 1, 2)
    reassign(driver, (4, 5, 6))
    driver.propose_isr("t", (3, 1, 2, 6))
    assert reassign(driver, (4, 1))[0] == ErrorCode.NONE
    partition = driver.partition("t")
    assert lists(partition) == ((4, 1, 3, 2), (2, 3), (4,)), "5 and 6 are dropped"
    assert (partition.isr, partition.leader_epoch) == ((3, 1, 2), 1)
    assert reassign(driver, None)[0] == ErrorCode.NONE
    assert lists(driver.partition("t")) == ((1, 3, 2), (), ())


def test_an_override_keeps_the_last_that_is_in_sync() -> None:
    driver = six_brokers()
    reassign(driver, (4, 5, 6))
    driver.propose_isr("t", (1, 2, 3, 6))
    for victim in (1, 2, 3):
        die(driver, victim)
    assert driver.leader_and_isr("t") == (6, (6,))
    reassign(driver, (4, 5))
    partition = driver.partition("t")
    assert partition.leader == 6 and 6 in partition.removing
    catch_up(driver)
    assert lists(driver.partition("t")) == ((4, 5), (), ())


def test_the_same_target_again_changes_nothing() -> None:
    driver = six_brokers()
    reassign(driver, (4, 5, 6))
    length = len(driver.log)
    assert reassign(driver, (4, 5, 6))[0] == ErrorCode.NONE
    assert len(driver.log) == length


def test_a_cancellation_gives_back_the_original() -> None:
    driver = six_brokers(2, 1, 3)
    reassign(driver, (4, 5, 6))
    driver.propose_isr("t", (2, 1, 3, 4))
    assert reassign(driver, None)[0] == ErrorCode.NONE
    partition = driver.partition("t")
    assert lists(partition) == ((2, 1, 3), (), ())
    assert (partition.leader, partition.isr) == (2, (2, 1, 3))
    assert partition.leader_epoch == 1, "replicas leave"
    assert story(driver)[-1] == Cause.REASSIGNMENT_CANCEL


@pytest.mark.parametrize("unclean", [False, True])
def test_a_cancellation_that_would_lose_data(unclean: bool) -> None:
    """Only the adding replicas are in sync."""
    driver = six_brokers()
    reassign(driver, (4, 5, 6))
    driver.propose_isr("t", (1, 2, 3, 4))
    for victim in (1, 2, 3):
        die(driver, victim)
    come_back(driver, 2)
    if unclean:
        driver.handle(unclean_allowed())
    error, message = reassign(driver, None)
    partition = driver.partition("t")
    if unclean:
        assert error == ErrorCode.NONE
        assert lists(partition) == ((1, 2, 3), (), ())
        assert (partition.leader, partition.isr) == (2, (2,))
        assert partition.leader_recovery_state == RECOVERING
        assert story(driver)[-1] == Cause.UNCLEAN_ELECTION
    else:
        assert error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert message == (
            "Unable to revert partition assignment for t:0 because it would require an unclean "
            "leader election."
        )
        assert partition.reassigning


@pytest.mark.parametrize(
    ("asked", "topic", "resizable", "error", "message"),
    [
        (
            (0, (4,)), "absent", True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "Unable to find a topic named absent.",
        ),
        (
            (7, (4,)), "t", True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "Unable to find partition t:7.",
        ),
        (
            (-1, (4,)), "t", True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "Unable to find partition t:-1.",
        ),
        (
            (0, ()), "t", True, ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            (0, (4, 9)), "t", True, ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            (0, (4, 5, 4)), "t", True, ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 4 more than once.",
        ),
        (
            (0, (4, 5)), "t", False, ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is changed from 3 to 2",
        ),
        ((0, None), "t", True, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
    ],
)  # fmt: skip
def test_what_is_refused(
    asked: tuple[int, Ids | None],
    topic: str,
    resizable: bool,
    error: ErrorCode,
    message: str | None,
) -> None:
    driver = six_brokers()
    length = len(driver.log)
    answer = ask(driver, asked, topic=topic, resizable=resizable)
    result = answer.responses[0].partitions[0]
    assert (answer.error_code, result.error_code) == (ErrorCode.NONE, error)
    if message is not None:
        assert result.error_message == message
    assert len(driver.log) == length


def test_one_refusal_does_not_fail_the_others_and_no_partition_twice() -> None:
    driver = six_brokers()
    results = ask(driver, (0, (9,)), (0, (4, 5, 6)), (0, (1, 2))).responses[0].partitions
    assert [each.error_code for each in results] == [
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert driver.partition("t").adding == (4, 5, 6)


def test_the_size_of_a_running_one_is_that_of_its_target() -> None:
    driver = six_brokers()
    reassign(driver, (4, 5))
    assert reassign(driver, (4, 5, 6), resizable=False)[0] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(driver, (5, 6), resizable=False)[0] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, [("t", [0]), ("u", [1])]),
        ({"u": (0, 1, 7), "absent": (0,)}, [("u", [1])]),
        ({"t": ()}, []),
        ({}, []),
    ],
)
def test_what_is_listed(wanted: dict[str, Ids] | None, found: list[tuple[str, list[int]]]) -> None:
    driver = six_brokers()
    driver.create("u", (1, 2), (2, 3))
    reassign(driver, (4, 5, 6))
    ask(driver, (1, (2, 4)), topic="u")
    topics = None
    if wanted is not None:
        topics = tuple(
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in wanted.items()
        )
    length = len(driver.log)
    answer = driver.handle(ListPartitionReassignmentsRequest(topics=topics))
    assert len(driver.log) == length
    assert [
        (topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics
    ] == found
    if wanted is None:
        ongoing = answer.topics[0].partitions[0]
        assert ongoing.replicas == (4, 5, 6, 1, 2, 3)
        assert (ongoing.adding_replicas, ongoing.removing_replicas) == ((4, 5, 6), (1, 2, 3))


def test_a_fenced_broker_may_be_a_target() -> None:
    """The fenced broker enters the ISR when it returns."""
    driver = six_brokers()
    die(driver, 6)
    assert reassign(driver, (1, 6))[0] == ErrorCode.NONE
    assert lists(driver.partition("t")) == ((1, 6, 2, 3), (2, 3), (6,))
    come_back(driver, 6)
    catch_up(driver)
    assert lists(driver.partition("t")) == ((1, 6), (), ())


def test_growth_during_a_reassignment_has_the_factor_of_the_target() -> None:
    driver = six_brokers()
    reassign(driver, (4, 5, 6))
    topic = CreatePartitionsTopic(name="t", count=2, assignments=None)
    driver.handle(CreatePartitionsRequest(topics=(topic,), timeout_ms=0, validate_only=False))
    assert len(driver.partition("t", 1).replicas) == 3


def check_partition(driver: Driver) -> None:
    partition = driver.partition("t")
    replicas, isr = set(partition.replicas), set(partition.isr)
    assert len(replicas) == len(partition.replicas) == len(partition.directories)
    assert isr and len(isr) == len(partition.isr) and isr <= replicas
    assert partition.leader == -1 or partition.leader in isr
    assert set(partition.adding) | set(partition.removing) <= replicas
    assert not set(partition.adding) & set(partition.removing)
    assert partition.leader == -1 or driver.broker(partition.leader).active


@pytest.mark.parametrize("seed", range(25))
def test_any_order_of_starts_cancellations_deaths_and_takeovers(seed: int) -> None:
    """No step ever breaks the partition, and in the end the last target is reached."""
    choose = random.Random(seed)
    driver = six_brokers()
    wanted: Ids | None = None
    for _ in range(40):
        step = choose.choice(("start", "cancel", "join", "join", "die", "return", "take over"))
        partition = driver.partition("t")
        dead = [each for each in range(1, 7) if driver.broker(each).fenced]
        if step == "start":
            replicas = tuple(choose.sample(range(1, 7), choose.randint(1, 4)))
            assert reassign(driver, replicas)[0] == ErrorCode.NONE
            wanted = replicas
        elif step == "cancel" and reassign(driver, None)[0] == ErrorCode.NONE:
            wanted = None
        elif step == "join" and partition.leader > 0:
            outside = [
                each
                for each in partition.replicas
                if each not in partition.isr and driver.broker(each).active
            ]
            if outside:
                driver.propose_isr("t", (*partition.isr, choose.choice(outside)))
        elif step == "die" and len(dead) < 3:
            die(driver, choose.choice([each for each in range(1, 7) if each not in dead]))
        elif step == "return" and dead:
            come_back(driver, choose.choice(dead))
        elif step == "take over":
            take_over(driver)
        check_partition(driver)
    for each in range(1, 7):
        if driver.broker(each).fenced:
            come_back(driver, each)
    catch_up(driver)
    check_partition(driver)
    assert not driver.partition("t").reassigning
    if wanted is not None:
        assert driver.partition("t").replicas == wanted
