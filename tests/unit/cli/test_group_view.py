"""The lines of `consumer-groups` equal those of kafka-consumer-groups 4.1.1 for the same groups."""

# ruff: noqa: E501 -- the tool's lines are as wide as they are
from __future__ import annotations

import pytest

from quorate.cli.client.errors import Refused
from quorate.cli.client.groups import assigned
from quorate.cli.groups.group_view import (
    member_lines,
    offset_lines,
    offset_rows,
    reset_lines,
    state_lines,
)
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup, DescribedGroupMember

TWO_OF_T = (
    b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02" + b"\x00\x00\x00\x00\x00\x00\x00\x01"
)
MEMBER = DescribedGroupMember(
    member_id="client-HyCtQlFZTHStqtB0rgYK8A",
    client_id="client",
    client_host="/127.0.0.1",
    member_metadata=b"",
    member_assignment=TWO_OF_T,
)
LIVE = DescribedGroup(
    error_code=0,
    group_id="live",
    group_state="Stable",
    protocol_type="consumer",
    protocol_data="range",
    members=(MEMBER,),
)


def test_offsets_of_members_come_before_those_that_are_nobodys() -> None:
    committed = {("t", 0): 7, ("u", 3): 2}
    rows = offset_rows(LIVE, committed, lambda place: 10)
    assert offset_lines(rows) == [
        "",
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID                   HOST            CLIENT-ID",
        "live            t               0          7               10              3               client-HyCtQlFZTHStqtB0rgYK8A /127.0.0.1      client",
        "live            t               1          -               10              -               client-HyCtQlFZTHStqtB0rgYK8A /127.0.0.1      client",
        "live            u               3          2               10              8               -                             -               -",
    ]
    assert rows[0].as_json()["lag"] == 3


def test_members_with_what_they_are_assigned() -> None:
    assert member_lines(LIVE, verbose=True) == [
        "",
        "GROUP           CONSUMER-ID                   HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   ",
        "live            client-HyCtQlFZTHStqtB0rgYK8A /127.0.0.1      client          2               -               t:0,1                -               -                   ",
    ]
    assert member_lines(LIVE, verbose=False)[2].endswith(" 2               ")


def test_state_and_reset_plan() -> None:
    assert state_lines(LIVE, (5, "127.0.0.1", 41335)) == [
        "",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS",
        "live            127.0.0.1:41335  (5)      range                Stable               1",
    ]
    assert reset_lines("keeper", {("t", 1): 5}) == [
        "",
        "GROUP                          TOPIC                          PARTITION  NEW-OFFSET     ",
        "keeper                         t                              1          5              ",
    ]


def test_an_assignment_that_cannot_be_read_is_told() -> None:
    assert assigned(b"") == []
    assert assigned(TWO_OF_T) == [("t", 0), ("t", 1)]
    with pytest.raises(Refused, match="cannot be decoded"):
        assigned(TWO_OF_T[:-1])
