"""The rows of changes and of nodes: what is delayed comes first."""

from __future__ import annotations

from quorate.cli.console.views.change_rows import COMPLETE, IN_FLIGHT, change_rows, node_rows
from quorate.cli.status.changes_in_flight import Change, ChangesReport, Delay
from quorate.cli.status.node_stages import NodeStages


def change(offset: int, *delays: Delay) -> Change:
    return Change(
        offset=offset,
        topic="orders",
        partition=3,
        change={"leader": 5},
        cause="session-expired",
        hosts=(4, 5),
        requested_ms=1_000,
        appended_ms=1_002,
        committed_ms=1_005,
        acted_ms={4: 1_010, 5: 1_020},
        delays=delays,
    )


def node(node_id: int, *, active: bool = False) -> NodeStages:
    controller = {"active": active, "queued": 0, "uncommitted": 0}
    return NodeStages(
        node_id=node_id,
        roles=("controller",),
        time_ms=5_000,
        offsets={"committed": 9},
        marks={},
        proposals=None,
        controller=controller,
    )


REPORT = ChangesReport(
    time_ms=5_000,
    committed=11,
    nodes={1: node(1, active=True), 2: None, 3: node(3)},
    changes=(change(5), change(6, Delay(node_id=4, what="to act on it")), change(7)),
    moves=(),
)


def test_changes_in_flight_come_first_and_name_the_node_that_delays_them() -> None:
    rows = change_rows(REPORT)
    assert [(row[0], row[3]) for row in rows] == [(6, IN_FLIGHT), (7, COMPLETE), (5, COMPLETE)]
    assert rows[0][4:] == ("leader 5", "session-expired", "4000 ms", "node 4 to act on it")
    assert rows[1][4:] == ("leader 5", "session-expired", "20 ms", "")


def test_nodes_that_do_not_answer_come_first() -> None:
    rows = node_rows(REPORT)
    assert [row[:2] for row in rows] == [(2, "silent"), (1, "active"), (3, "ok")]
    assert rows[0][2] == "does not answer"
    assert "committed 9 (2 behind)" in str(rows[2][2])
