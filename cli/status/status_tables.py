"""The status as tables of a terminal: shares as bars first, then brokers and problems, the worst
first.

A small terminal shows fewer columns, and of the brokers those that are not up, so that the worst
problems are on the screen. A broker that is down is explained once, in its row. A partition's row
repeats the cause only with --all, or if no broker in the table explains it. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.cli.status.cluster_status import (
    MAX_GROUPS,
    MAX_SHOWN,
    BrokerLine,
    Status,
    shown_elections,
)
from quorate.cli.status.node_answers import READY, SILENT, NodeAnswer
from quorate.cli.status.partition_problems import (
    OFFLINE,
    TEXTS,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    Group,
    Problem,
    count_states,
    counted,
)
from quorate.cli.status.unclean_elections import election_groups
from quorate.cli.terminal.tables import Bar, Cell, Mark, Part, Table, Value

MARKS = {OFFLINE: Mark.BAD, UNDER_MIN_ISR: Mark.BAD, UNDER_REPLICATED: Mark.WARN}


def status_tables(status: Status, *, every: bool = False, small: bool = False) -> Iterator[Part]:
    """Yield the tables of the status. With `every` they list all problems, each with its cause.
    `small` means a small terminal."""
    if small:
        yield from small_tables(status, every=every)
        return
    yield Cell(f"Cluster {status.cluster_id}", Mark.NOTE)
    if status.quorum_lost:
        yield Cell(f"Quorum: {status.quorum_text()}", Mark.BAD)
    if status.brokers_silent:
        yield Cell(status.partitions_text(), Mark.BAD)
    yield Table(rows=shares(status))
    if status.nodes:
        rows = [node_row(each) for each in status.nodes]
        yield Table(title="Controllers", columns=NODE_COLUMNS, rows=rows)
    yield Table(title="Brokers", columns=BROKER_COLUMNS, rows=broker_rows(status.brokers))
    found = status.problems if every else status.problems[:MAX_SHOWN]
    if len(status.problems) > 1:
        most = status.groups if every else status.groups[:MAX_GROUPS]
        yield Table(title="Problems by cause", columns=CAUSE_COLUMNS, rows=cause_rows(most))
        yield from rest(len(status.groups) - len(most))
    if found:
        rows = [problem_row(each, every=every) for each in found]
        yield Table(
            title="Problems, the worst first",
            columns=PROBLEM_COLUMNS,
            rows=rows,
            optional=(BAR_OF_REPLICAS,),
        )
        yield from rest(len(status.problems) - len(found))
    if status.unclean_elections:
        elections = status.unclean_elections
        shown = shown_elections(elections, every=every)
        yield unclean(status)
        yield from (f"  {each.line()}" for each in election_groups(elections))
        yield from (f"  {each.line()}" for each in shown)
        yield from rest(len(elections) - len(shown))


def small_tables(status: Status, *, every: bool) -> Iterator[Part]:
    """Yield the tables for a terminal of 80 columns and 24 rows: a line about the quorum, the
    shares, and the problems, the worst first."""
    bad = status.quorum_lost or status.silent_voters
    yield Cell(f"Quorum: {status.quorum_text()}", Mark.BAD if bad else None)
    if status.brokers_silent:
        yield Cell(status.partitions_text(), Mark.BAD)
    yield Table(
        rows=[(text, bar, "" if text == VOTERS else note) for text, bar, note in shares(status)]
    )
    if status.nodes:
        yield Table(columns=NODE_COLUMNS, rows=[node_row(each) for each in status.nodes])
    down = [each for each in status.brokers if each.state != "up"]
    brokers = [
        (number, state, address, each.cause or cause)
        for each in down or status.brokers
        for number, state, address, _, cause in broker_rows([each])
    ]
    yield Table(columns=(*BROKER_COLUMNS[:3], BROKER_COLUMNS[4]), rows=brokers)
    if len(status.groups) > 1:
        yield Table(
            columns=CAUSE_COLUMNS[:2], rows=[each[:2] for each in cause_rows(status.groups)]
        )
    if status.problems:
        yield Table(
            columns=(*PROBLEM_COLUMNS[:3], *PROBLEM_COLUMNS[4:]),
            rows=[
                (*row[:3], *row[4:])
                for row in (problem_row(each, every=every) for each in status.problems)
            ],
        )
    if status.unclean_elections:
        yield unclean(status)


def unclean(status: Status) -> Cell:
    """Return the line about elections that may have lost records."""
    count = len(status.unclean_elections)
    return Cell(f"Unclean elections: {count}; records may be lost", Mark.BAD)


VOTERS = "Voters that answer"
NODE_COLUMNS = ("Controller", "State", "Address", "Cause")
BROKER_COLUMNS = ("Broker", "State", "Address", "Rack", "Cause")
CAUSE_COLUMNS = ("Reason", "Partitions", "Cause")
BAR_OF_REPLICAS = "In sync"
PROBLEM_COLUMNS = ("Partition", "State", "Leader", BAR_OF_REPLICAS, "ISR", "Replicas", "Reason")


def shares(status: Status) -> list[tuple[Value, ...]]:
    """Return the rows with bars: voters, brokers, and partitions in each state."""
    rows: list[tuple[Value, ...]] = []
    voters = len(status.voter_lags)
    if voters:
        answering = voters - len(status.silent_voters)
        quorum = Cell(status.quorum_text(), Mark.BAD if status.silent_voters else None)
        rows.append((VOTERS, Bar(answering, voters), quorum))
    elif status.nodes:
        answering = sum(each.state != SILENT for each in status.nodes)
        rows.append(("Controllers that answer", Bar(answering, len(status.nodes)), ""))
    up = sum(each.state == "up" for each in status.brokers)
    rows.append(("Brokers up", Bar(up, len(status.brokers)), ""))
    if status.brokers_silent:
        return rows
    counts = count_states(status.problems)
    bad = 0
    for text, state in (
        ("Partitions with a leader", OFFLINE),
        ("at min ISR or above", UNDER_MIN_ISR),
        ("fully in sync", UNDER_REPLICATED),
    ):
        bad += counts[state]
        number = f"{counts[state]} {TEXTS[state]}" if counts[state] else ""
        share = Bar(status.partitions - bad, status.partitions)
        rows.append((text, share, Cell(number, MARKS[state])))
    return rows


def broker_rows(brokers: Sequence[BrokerLine]) -> list[tuple[Value, ...]]:
    """Return the rows of the brokers, the fenced ones first."""
    return [
        (
            each.id,
            Cell(each.state, Mark.GOOD if each.state == "up" else Mark.BAD),
            each.address,
            each.rack,
            "; ".join(filter(None, (each.why, each.certificate))) or None,
        )
        for each in sorted(brokers, key=lambda broker: (broker.state == "up", broker.id))
    ]


def node_row(answer: NodeAnswer) -> tuple[Value, ...]:
    """Return the row of a controller."""
    mark = Mark.GOOD if answer.state == READY else Mark.BAD
    return (answer.id, Cell(answer.state, mark), answer.address, answer.why() or None)


def cause_rows(groups: Sequence[Group]) -> list[tuple[Value, ...]]:
    """Return the rows of the problems with the same reason."""
    return [
        (
            str(each.reason),
            Cell(counted(each.counts), next(MARKS[state] for state in each.counts)),
            each.why or None,
        )
        for each in groups
    ]


def problem_row(problem: Problem, *, every: bool) -> tuple[Value, ...]:
    """Return the row of a partition."""
    reasons = [*map(str, problem.reasons)]
    if problem.why and (every or not any(reason.down for reason in problem.reasons)):
        reasons.append(problem.why)
    if problem.elr:
        reasons.append(f"elr {ids(problem.elr)}")
    if problem.last_leader is not None:
        reasons.append(f"last leader {problem.last_leader}")
    return (
        f"{problem.topic}-{problem.partition}",
        Cell(TEXTS[problem.state], MARKS[problem.state]),
        Cell("none", Mark.BAD) if problem.leader is None else problem.leader,
        Bar(len(problem.isr), len(problem.replicas)),
        ids(problem.isr) or None,
        ids(problem.replicas),
        "; ".join(reasons),
    )


def rest(count: int) -> Iterator[Part]:
    """Yield a line about the rows that are left out, if `count` is positive."""
    if count > 0:
        yield Cell(f"and {count} more (--all lists them)", Mark.NOTE)


def ids(values: Sequence[int]) -> str:
    """Return ids separated by commas."""
    return ",".join(map(str, values))
