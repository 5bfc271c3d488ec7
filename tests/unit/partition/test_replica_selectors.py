"""The choice of the replica that a consumer reads from (KIP-392)."""

from __future__ import annotations

import pytest

from quorate.broker.partition.leadership import Leadership
from quorate.broker.partition.replica_selectors import (
    LEAST_LOADED,
    RACK_AWARE,
    SELECTORS,
    Follower,
    least_loaded,
    rack_aware,
    readable_followers,
)
from quorate.broker.partition.settings import PartitionSettings
from quorate.config.key import ConfigError
from quorate.config.node_keys import NODE_KEYS
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import Partition


def follower(
    broker_id: int, rack: str | None, end_offset: int = 10, caught_up: int = 0
) -> Follower:
    return Follower(broker_id, rack, end_offset, caught_up)


@pytest.mark.parametrize(
    ("followers", "leader_rack", "rack", "chosen"),
    [
        ([follower(2, "b"), follower(3, "c")], "a", "b", 2),
        ([follower(2, "b"), follower(3, "c")], "a", "", None),  # no rack
        ([follower(2, "b")], "a", "z", None),  # nothing in the rack
        ([follower(2, "a")], "a", "a", None),  # the leader is in the rack
        ([follower(2, "b", 9), follower(3, "b", 10)], "a", "b", 3),  # the longest log
        ([follower(2, "b", 9, 70), follower(3, "b", 9, 80)], "a", "b", 3),  # caught up latest
        ([follower(2, None)], None, "b", None),
        ([], "a", "b", None),
    ],
)
def test_rack_aware(
    followers: list[Follower], leader_rack: str | None, rack: str, chosen: int | None
) -> None:
    assert rack_aware(followers, leader_rack, rack, {}) == chosen


@pytest.mark.parametrize(
    ("rack", "readers", "chosen"),
    [
        ("", {}, 3),  # the longest log wins a tie
        ("", {3: 2, 2: 1, 4: 5}, 2),
        ("b", {2: 9, 4: 8}, 4),  # the rack comes first
        ("a", {}, None),  # only the leader is there
        ("z", {2: 1, 3: 1}, 4),
    ],
)
def test_least_loaded(rack: str, readers: dict[int, int], chosen: int | None) -> None:
    followers = [follower(2, "b"), follower(3, "c", 11), follower(4, "b")]
    assert least_loaded(followers, "a", rack, readers) == chosen
    assert least_loaded([], "a", rack, readers) is None


def test_only_in_sync_followers_with_the_offset_can_be_read() -> None:
    """KAFKA-14372: a lagging follower is never chosen, however often the consumer asks."""
    leadership = Leadership((Uuid(bytes(16)), 0), 1, lambda _: None, PartitionSettings())
    value = Partition(replicas=(1, 2, 3, 4, 5), isr=(1, 2, 3, 5), leader=1, leader_epoch=0)
    leadership.assign(value, 0, 0)
    for broker_id, start_offset, end_offset in ((2, 5, 20), (3, 0, 9), (4, 0, 20)):
        leadership.replicas[broker_id].fetched(
            end_offset, start_offset, 1, leader_end_offset=20, now_ms=0
        )

    def readable(offset: int, reachable: bool = True) -> list[int]:
        found = readable_followers(leadership, offset, lambda _: (reachable, None))
        return [each.broker_id for each in found]

    assert readable(9) == [2, 3]
    assert readable(10) == [2], "3 has not reached the offset, 4 is not in sync, 5 never fetched"
    assert readable(4) == [3], "the log of 2 begins later"
    assert readable(21) == []
    assert readable(9, reachable=False) == [], "fenced, or without the consumer's listener"


def test_the_key_names_the_selectors() -> None:
    key = NODE_KEYS["replica.selector.class"]
    assert set(SELECTORS) == {RACK_AWARE, LEAST_LOADED}
    assert [key.parse(name) for name in SELECTORS] == list(SELECTORS)
    with pytest.raises(ConfigError):
        key.parse("com.example.OwnReplicaSelector")
