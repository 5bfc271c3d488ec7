"""Consumer groups as tables of a terminal. All functions are pure."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.cli.client.groups import assigned
from quorate.cli.groups.group_view import Row, shown_places
from quorate.cli.terminal.tables import Cell, Mark, Table
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup, ListedGroup

STATES = {"Stable": Mark.GOOD, "Empty": Mark.WARN, "Dead": Mark.BAD}
"""The marks of the states. The other states are those of a rebalance."""


def listing_table(groups: Sequence[ListedGroup]) -> Table:
    """Return the groups with their states."""
    rows = [(each.group_id, state_cell(each.group_state)) for each in groups]
    return Table(columns=("Group", "State"), rows=rows)


def offset_table(rows: Sequence[Row]) -> Table:
    """Return the offsets of one group, in the order of `rows`. A lag is marked."""
    return Table(
        title=rows[0].group,
        columns=(
            "Topic",
            "Partition",
            "Committed",
            "Log end",
            "Lag",
            "Consumer",
            "Host",
            "Client",
        ),
        rows=[
            (
                each.topic,
                each.partition,
                each.current,
                each.end,
                None if each.lag is None else Cell(str(each.lag), Mark.WARN if each.lag else None),
                *each.member,
            )
            for each in rows
        ],
    )


def member_table(described: DescribedGroup) -> Table:
    """Return the members of a group with their partitions."""
    return Table(
        title=described.group_id,
        columns=("Consumer", "Instance", "Host", "Client", "Partitions"),
        rows=[
            (
                each.member_id,
                each.group_instance_id,
                each.client_host,
                each.client_id,
                shown_places(assigned(bytes(each.member_assignment))),
            )
            for each in described.members
        ],
    )


def state_table(described: DescribedGroup, coordinator: tuple[int, str, int]) -> Table:
    """Return the state of a group. `coordinator` is (id, host, port)."""
    node_id, host, port = coordinator
    return Table(
        title=described.group_id,
        columns=("State", "Coordinator", "Strategy", "Members"),
        rows=[
            (
                state_cell(described.group_state),
                f"{node_id} at {host}:{port}",
                described.protocol_data or None,
                len(described.members),
            )
        ],
    )


def state_cell(state: str) -> Cell:
    """Return the cell of a group's state."""
    return Cell(state, STATES.get(state, Mark.WARN))
