"""The search of `quorate status` for elections that may have lost data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.cli.status import unclean_elections
from quorate.cli.status.explanations import NotServed, Page
from quorate.cli.status.unclean_elections import (
    UncleanElection,
    UncleanElections,
    election_groups,
)
from tests.unit.cli.test_status_watch import HEALTHY

LOSS = "unclean-election 130 120"


def line(offset: int, cause: str = LOSS, topic: str = "id") -> dict[str, object]:
    record = {"topicId": topic, "partitionId": 3, "leader": 5}
    return {"offset": offset, "cause": cause, "timestamp_ms": 0, "record": record}


class Node:
    """Answers GET with scripted pages, or an exception, one after another."""

    def __init__(self, *answers: Page | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def get(self, target: str) -> Page:
        self.asked.append(target)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_loss_is_shown_with_the_old_and_the_new_end() -> None:
    node = Node(Page([line(40)], 60), Page([line(70, "last-known-leader")], 90))
    found = UncleanElections().of({"id": "orders"}, 90, node.get)
    assert [each.offset for each in found] == [70, 40], "the newest first"
    assert found[1].line() == (
        "orders-3: leader 5 since 1970-01-01 00:00:00Z, offset 40: A leader outside the ISR was "
        "elected: data may be lost. The new leader's log ends at offset 120, the longest known one "
        "at 130: at least 10 offsets are lost."
    )
    assert node.asked[0].startswith("/v1/changes?from=0&limit=1000&types=PARTITION_CHANGE_RECORD&")
    assert node.asked[0].endswith("causes=unclean-election,last-known-leader")
    assert "from=60&" in node.asked[1]


def test_the_next_search_reads_only_what_is_new() -> None:
    elections = UncleanElections()
    assert elections.of({"id": "orders"}, 50, Node(Page([line(40)], 50)).get)
    node = Node(Page([], 80))
    assert [each.offset for each in elections.of({"id": "orders"}, 80, node.get)] == [40]
    assert "from=50&" in node.asked[0]
    assert elections.of({"id": "orders"}, 80, Node().get), "nothing is new"


def test_a_search_looks_back_for_a_bounded_part_of_the_log() -> None:
    node = Node(Page([], 1_000_000))
    UncleanElections().of({}, 1_000_000, node.get)
    assert f"from={1_000_000 - unclean_elections.LOOK_BACK}&" in node.asked[0]


def test_a_log_that_begins_later_is_searched_from_its_start() -> None:
    node = Node(LookupError("gone"), Page([line(40)], 50))
    assert UncleanElections().of({"id": "orders"}, 50, node.get)
    assert "from=" not in node.asked[1]


def test_other_topics_are_left_out_and_nodes_of_kafka_serve_nothing() -> None:
    assert UncleanElections().of({"id": "t"}, 50, Node(Page([line(4, topic="x")], 50)).get) == []
    elections, node = UncleanElections(), Node(NotServed("no"))
    assert elections.of({"id": "t"}, 50, node.get) == []
    assert elections.of({"id": "t"}, 60, node.get) == [], "no further request is sent"


def test_a_slow_search_stops_and_continues_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unclean_elections, "SEARCH_S", 0.0)
    elections = UncleanElections()
    assert elections.of({}, 50, Node().get) == []
    monkeypatch.setattr(unclean_elections, "SEARCH_S", 60.0)
    assert elections.of({"id": "t"}, 50, Node(Page([line(4)], 50)).get)


def elections(*found: tuple[str, int, str]) -> list[UncleanElection]:
    """Return elections of leader 1 from (topic, partition, cause)."""
    return [
        UncleanElection(
            topic=topic, partition=partition, leader=1, cause=cause, offset=9, timestamp_ms=0
        )
        for topic, partition, cause in found
    ]


def test_the_identical_elections_of_one_broker_are_one_line_with_the_remedy() -> None:
    same = [("__consumer_offsets", number, "last-known-leader 5 5") for number in range(50)]
    mine = [("orders", number, "last-known-leader 7 5") for number in range(5)]
    found = elections(*same, *mine)
    (group,) = election_groups(found)
    assert group.line() == (
        "leader 1 of 55 partitions, 50 of them of internal topics (orders-0, orders-1, orders-2 "
        "and 52 more): No replica with all data was left; the last leader leads again: data may be "
        "lost. 5 partitions lost at least 10 offsets. Send lost records again from their source. "
        "More replicas prevent a loss, and flush.messages=1 does if there is one."
    )
    status = replace(HEALTHY, unclean_elections=tuple(found))
    lines = [*status.lines()]
    start = lines.index("Unclean elections: 55; records may be lost")
    assert len(lines) - start == 1 + 1 + 5 + 1, "the group, those with a loss, the rest"
    assert lines[-1] == "  and 50 more (--all lists them)"
    assert len([*status.lines(every=True)]) - start == 1 + 1 + 55


def test_groups_of_internal_topics_are_the_last_ones() -> None:
    found = election_groups(
        elections(
            *(("__consumer_offsets", number, "last-known-leader 9 5") for number in range(50)),
            ("orders", 0, "unclean-election ? 5"),
        )
    )
    assert [each.cause for each in found] == ["unclean-election", "last-known-leader"]
    assert "leader 1 of 1 partition (orders-0): " in found[0].line()
    assert "No loss is known. " in found[0].line()
    assert "unclean.leader.election.enable=false" in found[0].line()


def test_elections_of_internal_topics_follow_newer_ones() -> None:
    node = Node(Page([line(40, topic="mine"), line(50, topic="offsets")], 60))
    names = {"mine": "orders", "offsets": "__consumer_offsets"}
    found = UncleanElections().of(names, 60, node.get)
    assert [each.topic for each in found] == ["orders", "__consumer_offsets"]
