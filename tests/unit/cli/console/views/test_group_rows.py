"""The rows of groups and of their lags: the largest lag first."""

from __future__ import annotations

import dataclasses

from quorate.cli.client.membership import assignment
from quorate.cli.console.views.group_rows import (
    UNKNOWN,
    Group,
    Offset,
    group_rows,
    next_names,
    offset_rows,
    within,
)
from quorate.cli.console.views.groups import owners_of
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup, DescribedGroupMember


def group(name: str, *lags: int | None) -> Group:
    """Return a group with one partition for each lag. None is a partition without a leader."""
    offsets = tuple(
        Offset(place=("t", number), committed=10, end=None if lag is None else 10 + lag)
        for number, lag in enumerate(lags)
    )
    return Group(name=name, state="Stable", coordinator=1, members=2, offsets=offsets)


def test_the_largest_lag_comes_first_and_an_unknown_one_last() -> None:
    listed = Group(name="a", state="Empty", coordinator=3)
    rows = group_rows([listed, group("b", 1), group("c", 2, 5), group("d", 1)])
    assert [row[:4] for row in rows] == [
        ("c", "Stable", 7, 2),
        ("b", "Stable", 1, 1),
        ("d", "Stable", 1, 1),
        ("a", "Empty", UNKNOWN, UNKNOWN),
    ]


def test_a_group_whose_partitions_have_no_leader_does_not_seem_to_be_without_lag() -> None:
    rows = group_rows([group("a", None, None), group("b", None, 4), group("c", 0), group("d")])
    assert [row[:4] for row in rows] == [
        ("b", "Stable", 4, 2),
        ("c", "Stable", 0, 1),
        ("d", "Stable", 0, 0),
        ("a", "Stable", UNKNOWN, 2),
    ]


def test_each_partition_of_each_group_has_a_row_by_its_lag() -> None:
    rows = offset_rows([group("b", 1, None), group("c", 5)])
    assert [row[:4] for row in rows] == [("c", "t", 0, 5), ("b", "t", 0, 1), ("b", "t", 1, UNKNOWN)]


def test_a_lag_is_known_only_with_both_offsets_and_is_never_negative() -> None:
    assert Offset(place=("t", 0), committed=None, end=4).lag is None
    assert Offset(place=("t", 0), committed=4, end=None).lag is None
    assert Offset(place=("t", 0), committed=9, end=4).lag == 0, "an unclean election"


def test_all_groups_get_their_turn() -> None:
    names, last, seen = ["a", "b", "c", "d", "e"], "", []
    for _ in range(3):
        some = next_names(names, last, 2)
        seen += some
        last = some[-1]
    assert seen == ["a", "b", "c", "d", "e", "a"]
    assert next_names(names, "", 9) == names
    assert next_names([], "a", 2) == []


def test_the_number_of_kept_offsets_is_bounded() -> None:
    kept, left_out = within({"a": group("a", 1, 1), "b": group("b", 1), "c": group("c", 1)}, 2)
    assert left_out == 2
    assert [each.lag for each in kept.values()] == [2, None, None]
    assert kept["b"].name == "b", "it stays in the table"


def test_only_members_of_consumer_groups_own_partitions() -> None:
    member = DescribedGroupMember(
        member_id="m",
        client_id="app",
        client_host="/h",
        member_metadata=b"",
        member_assignment=assignment([("t", 3)]),
    )
    damaged = dataclasses.replace(member, member_assignment=b"x")

    def described(protocol_type: str) -> DescribedGroup:
        return DescribedGroup(
            error_code=0,
            group_id="g",
            group_state="Stable",
            protocol_type=protocol_type,
            protocol_data="range",
            members=(damaged, member),
        )

    assert owners_of(described("consumer")) == {("t", 3): ("app", "/h")}
    assert owners_of(described("connect")) == {}
