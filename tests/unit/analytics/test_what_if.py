"""The effect of the loss of brokers, by hand and against the controller's own reaction."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.analytics.replay.moment import Moment, moment
from quorate.quorum.analytics.replay.what_if import (
    LOSES_DATA,
    WhatIf,
    brokers_in_racks,
    each_broker,
    what_if,
)
from quorate.quorum.metadata.records import (
    NO_LEADER,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.unit.analytics.logs import A, batches, write_segment
from tests.unit.analytics.ruled import Ruled


def broker(number: int, rack: str | None = None, *, fenced: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=A,
        broker_epoch=number,
        end_points=(),
        rack=rack,
        fenced=fenced,
    )


def partition(
    number: int, replicas: tuple[int, ...], isr: tuple[int, ...], elr: tuple[int, ...] = ()
) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=A,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        eligible_leader_replicas=elr or None,
    )


def config(name: str, value: str, topic: str = "a") -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value)


BROKERS = (broker(1, "r1"), broker(2, "r1"), broker(3, "r2"), broker(4, "r2", fenced=True))
TOPIC = TopicRecord(name="a", topic_id=A)


def state(directory: Path, *records: MetadataRecord) -> Moment:
    write_segment(directory, 0, b"".join(batches([(*BROKERS, TOPIC, *records)])))
    return moment(directory)


def verdicts(result: WhatIf) -> dict[int, tuple[str, int]]:
    return {fate.partition: (fate.verdict, fate.leader_after) for fate in result.fates}


def test_every_verdict(tmp_path: Path) -> None:
    at = state(
        tmp_path,
        config("min.insync.replicas", "2"),
        partition(0, (1, 2, 3), (1, 2, 3)),  # 2 leads, and two are left
        partition(1, (2, 1, 3), (2, 1, 3)),  # 2 goes on
        partition(2, (1, 2), (1, 2)),  # one is left
        partition(3, (1, 3), (1,)),  # 3 is out of sync
        partition(4, (1, 4), (1,)),  # 4 is fenced
        partition(5, (2, 3), (2, 3)),  # has no replica on 1
    )
    result = what_if(at, [1])
    assert verdicts(result) == {
        0: ("moves", 2),
        1: ("kept", 2),
        2: ("below min ISR", 2),
        3: ("offline", -1),
        4: ("offline", -1),
    }
    assert [fate.partition for fate in result.fates] == [3, 4, 2, 0, 1], "the worst first"
    assert {fate.partition: fate.unclean_leader for fate in result.fates} == {
        0: -1, 1: -1, 2: -1, 3: 3, 4: -1,
    }  # fmt: skip
    assert (result.partitions, result.count("offline"), result.lost_if_unclean) == (6, 2, 1)
    assert result.fates[0].in_sync == ()


def test_an_enabled_unclean_election_loses_data(tmp_path: Path) -> None:
    at = state(
        tmp_path,
        config("unclean.leader.election.enable", "true"),
        partition(0, (1, 3), (1,)),
    )
    assert verdicts(what_if(at, [1])) == {0: ("loses data", 3)}
    assert what_if(at, [1]).fates[0].in_sync == (3,)


def test_min_isr_is_unknown_unless_the_log_has_it(tmp_path: Path) -> None:
    at = state(tmp_path, partition(0, (1, 2), (1, 2)))
    assert verdicts(what_if(at, [1])) == {0: ("maybe below min ISR", 2)}


def test_an_eligible_replica_leads_without_loss(tmp_path: Path) -> None:
    records = (
        config("min.insync.replicas", "2"),
        partition(0, (1, 2, 3), (1,), elr=(3,)),
    )
    feature = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    at = state(tmp_path, *records, feature)
    assert verdicts(what_if(at, [1])) == {0: ("below min ISR", 3)}
    without = state(tmp_path / "without", *records)
    assert verdicts(what_if(without, [1])) == {0: ("offline", -1)}, "the feature is off"


def test_racks_and_the_broker_that_hurts_most(tmp_path: Path) -> None:
    at = state(
        tmp_path,
        config("min.insync.replicas", "1"),
        partition(0, (3,), (3,)),
        partition(1, (1, 3), (1, 3)),
        partition(2, (2, 3), (2, 3)),
    )
    assert brokers_in_racks(at.image, ["r1"]) == [1, 2]
    both = what_if(at, brokers_in_racks(at.image, ["r1"]))
    assert verdicts(both) == {1: ("moves", 3), 2: ("moves", 3)}
    ranked = each_broker(at)
    assert [each.lost for each in ranked] == [(1,), (3,), (2,)], "1 is the only voter; 4 is fenced"
    assert [each.quorum_survives for each in ranked] == [False, True, True]
    assert (ranked[0].voters, ranked[0].voters_left) == (1, 0)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(20, 200))
def test_the_controller_does_what_was_predicted(seed: int, steps: int) -> None:
    """The oracle is the controller: the broker's connection closes, and its port refuses."""
    ruled = Ruled(seed)
    ruled.run(steps)
    victims = [
        each for each, known in ruled.alive.items() if known and ruled.image.brokers[each].active
    ]
    if not victims:
        return
    victim = ruled.random.choice(victims)
    image = ruled.image
    at = Moment(offset=0, epoch=1, timestamp_ms=0, leader=1, voters=(), image=image, skipped={})
    predicted = what_if(at, [victim])
    ruled.alive[victim] = False
    ruled.take(ruled.controller.connection_lost(victim, image.brokers[victim].epoch))
    ruled.probe()
    if not ruled.image.brokers[victim].fenced:
        return
    for fate in predicted.fates:
        before, seen = (
            each.topics[each.topic_ids[fate.topic]].partitions[fate.partition]
            for each in (image, ruled.image)
        )
        if before.leader != victim and victim not in before.isr:
            continue  # The controller does not touch it.
        if fate.verdict == LOSES_DATA:
            # The controller asks for the longest log before it elects a replica uncleanly.
            assert seen.leader in (NO_LEADER, fate.leader_after), (fate, seen)
            continue
        assert seen.leader == fate.leader_after, (fate, seen)
        if seen.leader >= 0:
            assert set(seen.isr) == set(fate.in_sync), (fate, seen)
