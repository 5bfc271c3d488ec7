"""Consumer groups as the lines of kafka-consumer-groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from quorate.cli.client.groups import Place, assigned
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup, ListedGroup

MISSING = "-"
WHOLE_TOPIC = -1
"""The number in place of a partition of a topic that could not be looked up."""
MIN_WIDTH = 15
OFFSET_HEAD = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
VERBOSE_HEAD = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")
"""The columns of --verbose. Groups of the classic protocol have neither epochs nor targets."""
RESET_HEAD = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")


class MemberIdentity(NamedTuple):
    """The identity of a member. All fields are None for a partition without an owner."""

    consumer_id: str | None = None
    host: str | None = None
    client_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition, or one member without partitions. `current` is the committed offset."""

    group: str
    topic: str | None = None
    partition: int | None = None
    current: int | None = None
    end: int | None = None
    member: MemberIdentity = MemberIdentity()

    @property
    def lag(self) -> int | None:
        """Return the log end offset minus the committed offset, or None if one is unknown."""
        return None if self.current is None or self.end is None else self.end - self.current

    def columns(self) -> tuple[str, ...]:
        """Return the columns of the row as texts."""
        values = (self.group, self.topic, self.partition, self.current, self.end, self.lag)
        return tuple(MISSING if each is None else str(each) for each in (*values, *self.member))

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "current_offset": self.current,
            "log_end_offset": self.end,
            "lag": self.lag,
            **self.member._asdict(),
        }


def offset_rows(
    described: DescribedGroup, committed: dict[Place, int], end_of: Callable[[Place], int]
) -> list[Row]:
    """Return the rows of the members, those with the most partitions first.

    Partitions with a committed offset but without an owner follow. `end_of` returns the log end
    offset. Raise Refused if an assignment is malformed, and as `end_of` does."""
    members = [(each, assigned(bytes(each.member_assignment))) for each in described.members]
    rows = []
    taken: set[Place] = set()
    for owner, places in sorted(members, key=lambda pair: -len(pair[1])):
        member = MemberIdentity(owner.member_id, owner.client_host, owner.client_id)
        taken.update(places)
        if not places:
            rows.append(Row(group=described.group_id, member=member))
        rows += [row(described.group_id, each, committed, end_of, member) for each in places]
    rest = sorted(each for each in committed if each not in taken)
    return rows + [
        row(described.group_id, each, committed, end_of, MemberIdentity()) for each in rest
    ]


def row(
    group: str,
    place: Place,
    committed: dict[Place, int],
    end_of: Callable[[Place], int],
    member: MemberIdentity,
) -> Row:
    """Return the row of one partition."""
    topic, partition = place
    current, end = committed.get(place), end_of(place)
    return Row(
        group=group, topic=topic, partition=partition, current=current, end=end, member=member
    )


def offset_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table of the rows with its head."""
    shown = [OFFSET_HEAD, *(each.columns() for each in rows)]
    fixed = {2: 10, 3: 15, 4: 15, 5: 15}
    widths = [
        fixed.get(index, max(MIN_WIDTH, *(len(each[index]) for each in shown[1:])))
        for index in range(len(OFFSET_HEAD) - 1)
    ]
    return ["", *(aligned(each, widths) for each in shown)]


def member_lines(described: DescribedGroup, *, verbose: bool) -> list[str]:
    """Return the table of the members with its head; with `verbose`, also their partitions."""
    instances = any(each.group_instance_id for each in described.members)
    head = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    table: list[list[str]] = []
    places = {}
    for each in described.members:
        found = assigned(bytes(each.member_assignment))
        values = [described.group_id, each.member_id, each.client_host, each.client_id]
        places[len(table)] = found
        table.append([*values, str(len(found))])
        if instances:
            table[-1].insert(2, each.group_instance_id or "")
    if instances:
        head.insert(2, "GROUP-INSTANCE-ID")
    widths = [
        max(MIN_WIDTH, 17 if name == "GROUP-INSTANCE-ID" else 0, *(len(each[i]) for each in table))
        for i, name in enumerate(head[:-1])
    ]
    widths.append(MIN_WIDTH)
    if verbose:
        head += VERBOSE_HEAD
        for index, values in enumerate(table):
            values += [MISSING, shown_places(places[index]), MISSING, MISSING]
        longest = max((len(each[-3]) for each in table), default=0)
        widths += [MIN_WIDTH, max(20, longest), MIN_WIDTH, 20]
    # Kafka pads the last column and adds a space before an empty one
    tail = [] if verbose else [""]
    return ["", *(aligned([*each, *tail], widths) for each in (head, *table))]


def shown_places(places: Iterable[Place]) -> str:
    """Return partitions as `topic:0,1;other:2`."""
    topics: dict[str, list[str]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(str(partition))
    return ";".join(f"{topic}:{','.join(each)}" for topic, each in topics.items()) or MISSING


def state_lines(described: DescribedGroup, coordinator: tuple[int, str, int]) -> list[str]:
    """Return the table of the group's state. `coordinator` is (id, host, port)."""
    node_id, host, port = coordinator
    where = f"{host}:{port}  ({node_id})"
    widths = [max(MIN_WIDTH, len(described.group_id)), max(25, len(where)), 20, 20]
    head = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    values = (
        described.group_id,
        where,
        described.protocol_data or MISSING,
        described.group_state,
        str(len(described.members)),
    )
    return ["", aligned(head, widths), aligned(values, widths)]


def listing_lines(groups: Sequence[ListedGroup]) -> list[str]:
    """Return the table of groups with their states."""
    width = max([25, *(len(each.group_id) for each in groups)])
    rows = [("GROUP", "STATE"), *((each.group_id, each.group_state) for each in groups)]
    return [f"{group:<{width}} {state:<20}" for group, state in rows]


def reset_lines(group: str, planned: dict[Place, int]) -> list[str]:
    """Return the table of the new offsets of a group."""
    widths = [30, 30, 10, 15]
    rows = [(group, topic, str(p), str(offset)) for (topic, p), offset in sorted(planned.items())]
    return ["", *(aligned([*each, ""], widths).removesuffix(" ") for each in (RESET_HEAD, *rows))]


def deletion_lines(group: str, results: Mapping[Place, ErrorCode]) -> list[str]:
    """Return the table of the results of deleting offsets."""
    failed = any(results.values())
    head = (
        f"Request succeeded for deleting offsets with topic-level errors from group {group}."
        if failed
        else f"Request succeeded for deleting offsets from group {group}."
    )
    rows = [("TOPIC", "PARTITION", "STATUS")]
    for (topic, number), error in sorted(results.items()):
        status = f"Error: {error.name}: {error.message}" if error else "Successful"
        rows.append((topic, MISSING if number == WHOLE_TOPIC else str(number), status))
    return [
        "",
        head,
        "",
        *(f"{topic:<30} {number:<15} {status:<15}" for topic, number, status in rows),
    ]


def aligned(values: Sequence[str], widths: Sequence[int]) -> str:
    """Return the values padded to their widths. Values beyond the last width are not padded."""
    padded = (value.ljust(width) for value, width in zip(values, widths, strict=False))
    return " ".join([*padded, *values[len(widths) :]])
