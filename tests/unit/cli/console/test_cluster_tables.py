"""The tables of a reading: the worst first, with reasons."""

from __future__ import annotations

from tests.unit.cli.console.readings import partition, reading, tables, topic


def test_partitions_with_problems_come_first_with_their_reasons() -> None:
    rows = reading(4).tables.tables["partitions"].rows
    assert [row[1:3] for row in rows] == [
        (3, "offline"),
        (2, "under-min-isr"),
        (0, "ok"),
        (1, "ok"),
    ]
    assert rows[1][-1] == "broker 5 is down"
    assert rows[2][-1] == ""


def test_topics_with_problems_come_first() -> None:
    found = tables([topic("a", (partition(0),)), topic("b", (partition(0, None, ()),))])
    assert [row[:3] for row in found.tables["topics"].rows] == [("b", "offline", 1), ("a", "ok", 0)]


def test_brokers_that_are_fenced_come_first_with_their_cause() -> None:
    rows = reading(4).tables.tables["brokers"].rows
    assert [row[0] for row in rows] == [5, 4]
    assert rows[0][1:] == ("fenced", 0, 4, "b5:9092", "r1", "session-expired")
    assert rows[1][2:4] == (3, 4)


def test_the_overview_counts_and_explains() -> None:
    overview = reading(4).tables.overview
    assert overview["quorum"].startswith("Quorum: leader 1, epoch 3")
    assert (overview["brokers"], overview["fenced"], overview["partitions"]) == (2, 1, 4)
    assert overview["counts"] == {"offline": 1, "under-min-isr": 1, "under-replicated": 0}
    assert any("broker 5 is down" in line for line in overview["causes"])
