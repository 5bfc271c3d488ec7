"""The tables that each command draws on a terminal."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import replace

from quorate.cli.groups.group_tables import offset_table
from quorate.cli.groups.group_view import Row
from quorate.cli.history.text import shown_lines, table_lines
from quorate.cli.metadata_quorum.command import marked
from quorate.cli.reassign.move_tables import ongoing_table, progress_parts
from quorate.cli.reassign.reassignments import Ongoing
from quorate.cli.status.cluster_status import BrokerLine, Status
from quorate.cli.status.partition_problems import Problem, Reason
from quorate.cli.status.status_tables import status_tables
from quorate.cli.terminal.tables import MAX_ROWS, Cell, Mark, Table
from quorate.cli.topics import topic_tables
from quorate.cli.topics.topic_view import PartitionView, Report, TopicView
from tests.unit.cli.test_status_watch import BROKEN, HEALTHY
from tests.unit.cli.test_tables import Terminal, drawn, environment

__all__ = ["environment"]


def test_the_status_begins_with_the_shares_and_lists_the_worst_first() -> None:
    other = Problem(
        topic="s",
        partition=1,
        state="under-replicated",
        leader=5,
        isr=(5,),
        replicas=(5, 4),
        reasons=(Reason(broker=4, down=True),),
        why="the cause of the partition",
    )
    brokers = (BrokerLine(id=3, address="h:1", state="up", rack=None), *BROKEN.brokers)
    status = replace(BROKEN, partitions=4, brokers=brokers, problems=(*BROKEN.problems, other))
    lines = drawn(*status_tables(status))
    text = "\n".join(lines)
    assert "Brokers up                 ██████░░░░░░ 1 of 2" in text
    assert "Partitions with a leader   █████████░░░ 3 of 4   1 offline" in text
    assert "fully in sync              ██████░░░░░░ 2 of 4   1 under-replicated" in text
    starts = [each.split()[0] for each in lines if each.strip()]
    assert starts.index("4") < starts.index("3")
    assert starts.index("t-0") < starts.index("s-1")
    assert "session-expired" in text
    assert "the cause of the partition" not in text, "the row of broker 4 has the cause"
    every = drawn(*status_tables(status, every=True), columns=160)
    assert "the cause of the partition" in "\n".join(every)


def test_a_lost_quorum_is_in_the_status() -> None:
    lines = drawn(*status_tables(replace(HEALTHY, quorum_lost="1 of 3 voters", voter_lags={})))
    assert lines[1].startswith("Quorum: LOST: 1 of 3 voters.")
    assert not any("Voters that answer" in each for each in lines)


def test_problems_that_are_left_out_are_counted() -> None:
    many = tuple(replace(BROKEN.problems[0], partition=number) for number in range(30))
    status: Status = replace(BROKEN, problems=many, partitions=30)
    assert "and 10 more (--all lists them)" in drawn(*status_tables(status))
    assert not any("more (--all" in each for each in drawn(*status_tables(status, every=True)))


TOPIC = TopicView(
    name="orders",
    topic_id="ID",
    partitions=(
        PartitionView(partition=0, leader=1, replicas=(1, 2), isr=(1, 2)),
        PartitionView(partition=1, leader=None, replicas=(2, 3), isr=(), adding=(3,), elr=(2,)),
    ),
    configs={"min.insync.replicas": "2"},
)


def test_the_topics_have_a_row_for_each_partition() -> None:
    lines = drawn(*topic_tables.tables([TOPIC], Report(), frozenset({1})))
    assert lines[0] == "orders: 2 partitions, id ID, min.insync.replicas=2"
    assert lines[1].split("  ")[0] == "Partition"
    assert "Removing" not in lines[1]
    assert lines[-2].split() == ["0", "1", "█" * 12, "2", "of", "2", "1,2", "1,2", "-", "-"]
    assert lines[-1].split() == ["1", "none", "░" * 12, "0", "of", "2", "-", "2,3", "3", "2"]


def test_the_filters_of_topics_select_rows() -> None:
    parts = [*topic_tables.tables([TOPIC], Report(unavailable=True), frozenset({1}))]
    assert [len(each.rows) for each in parts if isinstance(each, Table)] == [1]
    assert [*topic_tables.tables([TOPIC], Report(overrides=True), frozenset({1}))] == [
        "orders: 2 partitions, id ID, min.insync.replicas=2"
    ]


def test_the_reassignments_that_need_attention_are_first() -> None:
    plan = {("t", 0): (1, 2), ("t", 1): (1, 2), ("t", 2): (1, 2)}
    present = {("t", 0): (1, 2), ("t", 1): (1, 3), ("t", 2): (1, 3)}
    ongoing = {("t", 2): Ongoing(replicas=(1, 3, 2), adding=(2,), removing=(3,))}
    lines = drawn(*progress_parts(plan, present, ongoing))
    assert lines[0] == "Completed   ████░░░░░░░░ 1 of 3 partitions"
    assert [each.split()[0] for each in lines[3:]] == ["t-1", "t-2", "t-0"]
    assert drawn(ongoing_table(ongoing))[-1].split() == ["t-2", "1,3,2", "2", "3"]


def test_a_lag_is_marked() -> None:
    rows = [Row(group="g", topic="t", partition=0, current=3, end=5), Row(group="g", topic="t")]
    cells = [row[4] for row in offset_table(rows).rows]
    assert cells == [Cell("2", Mark.WARN), None]
    assert marked(["1", "dir", "9", "0", "5", "5", "Leader"])[3] == Cell("0", Mark.GOOD)


def test_a_history_is_drawn_on_a_terminal_only() -> None:
    rows: list[dict[str, object]] = [
        {"topic": "a", "seconds": 1.5},
        {"topic": "b", "seconds": None},
    ]
    names = ["topic", "seconds"]
    many = rows * MAX_ROWS
    with redirect_stdout(Terminal()):
        assert any("───" in line for line in shown_lines(names, iter(rows)))
        assert [*shown_lines(names, iter(many))] == [*table_lines(names, many)]
    plain = [f"  {each}" for each in table_lines(names, rows)]
    assert [*shown_lines(names, rows, indent=2)] == plain
