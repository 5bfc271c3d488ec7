"""The explanation of a subject: its state now, and the events that concern it."""

from __future__ import annotations

import pytest

from quorate.cli.console.cluster_tables import ClusterTables
from quorate.cli.console.explanation import MAX_EVENTS, explanation
from quorate.cli.console.views.change_events import Event
from quorate.cli.console.views.change_rows import CHANGES, COMPLETE, IN_FLIGHT
from quorate.cli.console.views.table import Row, Table
from tests.unit.cli.console.readings import partition, tables, topic


def event(offset: int, subject: str, brokers: tuple[int, ...] = ()) -> Event:
    return Event("2026-01-02 03:04:05.678", offset, subject, 4, "what", "why", brokers)


def with_events(*events: Event) -> ClusterTables:
    found = tables([topic("a", (partition(0), partition(1))), topic("a-1", (partition(0),))])
    return found.with_views({"timeline": Table(Event._fields, events, "since offset 3")})


@pytest.mark.parametrize(
    ("subject", "offsets", "state"),
    [
        ("a-1", [9], ("topic", "a")),
        ("a-1-0", [8], ("topic", "a-1")),
        ("topic a", [9, 6], ("topic", "a")),
        ("topic a-1", [8], ("topic", "a-1")),
        ("broker 5", [9, 7], ("broker", 5)),
        ("quorum", [5], ("quorum", "Quorum: leader 1")),
        ("broker x", [], None),
        ("nothing", [], None),
    ],
)
def test_each_subject_has_its_own_events_and_its_state(
    subject: str, offsets: list[int], state: tuple[str, object] | None
) -> None:
    found = explanation(
        with_events(
            event(9, "a-1", (5,)),
            event(8, "a-1-0"),
            event(7, "broker 5"),
            event(6, "topic a"),
            event(5, "quorum"),
        ),
        subject,
    )
    assert [each[1] for each in found["events"]] == offsets
    assert found["note"] == "since offset 3"
    if state is None:
        assert found["now"] == []
    else:
        name, value = found["now"][0]
        assert (name, str(value)[:16]) == (state[0], str(state[1])[:16])


@pytest.mark.parametrize(
    ("subject", "missing"),
    [
        ("a-1", False),
        ("a-9", True),
        ("topic a", False),
        ("topic gone", True),
        ("broker 9", True),
        ("quorum", False),
        ("broker (default)", False),
        ("group billing", False),
    ],
)
def test_only_what_may_have_a_state_is_said_not_to_exist(subject: str, missing: bool) -> None:
    assert explanation(with_events(), subject)["missing"] is missing


def test_the_number_of_events_is_bounded() -> None:
    found = explanation(with_events(*(event(n, "a-0") for n in range(MAX_EVENTS + 5))), "a-0")
    assert (len(found["events"]), found["total"]) == (MAX_EVENTS, MAX_EVENTS + 5)


@pytest.mark.parametrize(
    ("subject", "offsets"),
    [("a-0", [6]), ("topic a", [6, 7]), ("broker 4", [6]), ("broker 41", [7]), ("quorum", [])],
)
def test_the_changes_that_a_node_delays_are_named(subject: str, offsets: list[int]) -> None:
    def change(offset: int, partition_id: int, state: str, waits: str) -> Row:
        return (offset, "a", partition_id, state, "leader 5", "cause", "4000 ms", waits)

    rows = [
        change(6, 0, IN_FLIGHT, "node 4 to act on it"),
        change(7, 1, IN_FLIGHT, "node 41 to answer"),
        change(5, 0, COMPLETE, ""),
    ]
    found = explanation(with_events().with_views({"changes": Table(CHANGES, rows)}), subject)
    assert [
        f"at offset {each} (leader 5)" in str(text)
        for each, text in zip(offsets, found["in_flight"], strict=True)
    ] == [True] * len(offsets)
