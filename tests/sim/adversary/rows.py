"""Node messages as msgpack rows, drawn from the declarations of `quorum/rpc/messages.py`.

A row holds plain values, so it can hold what no declaration allows: another type, an integer of any
width, an array of another length.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.metadata.records import Endpoint
from quorate.quorum.seams import Buffer
from tests.sim.adversary.values import OWN_ID, Aims, Draw

Row = list[Any]
LONGEST_TEXT_BYTES = 40_000
TYPE_CONFUSIONS: tuple[Any, ...] = (None, True, 1.5, b"", "", [], [[[]]], [[]] * 50, -(1 << 63))
FAR_EPOCHS = (
    (1 << 31) - 1,
    (1 << 31) - 2,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
    -1,
    -(1 << 63),
    (1 << 64) - 1,
)
NEAR_EPOCHS = (-1, 0, 0, 0, 1, 1, 2, 50)
"""Differences to the highest epoch of the quorum."""


def row_of(cls: type, draw: Draw, aims: Aims, fixed: Mapping[str, Any]) -> Row:
    """Return the values of `cls` in order. `fixed` names fields whose values the caller chose."""
    hints = typing.get_type_hints(cls)
    row = []
    for field in dataclasses.fields(cls):
        if field.name in fixed:
            row.append(fixed[field.name])
        else:
            row.append(_value(hints[field.name], field.name, draw, aims))
    return _reshaped(row, draw)


def _reshaped(row: Row, draw: Draw) -> Row:
    """Make some rows too short or too long."""
    if draw.wild() and draw.wild():
        return row[: draw.random.randrange(len(row) + 1)]
    return [*row, 7, []] if draw.wild() and draw.wild() else row


def _value(annotation: Any, name: str, draw: Draw, aims: Aims) -> Any:
    if draw.wild() and draw.random.getrandbits(1):
        return draw.of(*TYPE_CONFUSIONS)
    inner = _inner(annotation)
    if inner is not None:
        return None if draw.random.random() < 0.3 else _value(inner, name, draw, aims)
    if dataclasses.is_dataclass(annotation):
        return _structure(typing.cast(type, annotation), draw, aims)
    if typing.get_origin(annotation) is tuple:
        elements = typing.get_args(annotation)
        if elements[-1] is Ellipsis:
            count = draw.count(0, 1, 2)
            return [_value(elements[0], name, draw, aims)] * count
        return [_value(each, name, draw, aims) for each in elements]
    return LEAVES[annotation](name, draw, aims)


def _structure(cls: type, draw: Draw, aims: Aims) -> Row:
    if cls is ReplicaKey:
        machine = draw.of(*aims.cluster.machines.values())
        directory = machine.key.directory_id if draw.random.getrandbits(1) else draw.uuid()
        return [draw.of(machine.id, machine.id, OWN_ID), directory]
    if cls is Endpoint:
        machine = draw.of(*aims.cluster.machines.values())
        return [draw.of("PLAINTEXT", "REPLICATION", "x"), machine.name, draw.of(9092, 9093), 0]
    return row_of(cls, draw, aims, {})


def _inner(annotation: Any) -> Any:
    """Return X of `X | None`, or None. Buffer is a union, too."""
    if annotation == Buffer or typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return None
    rest = [each for each in typing.get_args(annotation) if each is not type(None)]
    return rest[0] if len(rest) == 1 else Buffer


def _integer(name: str, draw: Draw, aims: Aims) -> int:
    if draw.wild():
        return draw.arbitrary()
    if name == "epoch" or name.endswith("leader_epoch"):
        return max(0, aims.raft_epoch + draw.of(*NEAR_EPOCHS))
    if name.endswith("_id"):
        return draw.of(*aims.node_ids, OWN_ID)
    if name.endswith("_bytes"):
        return draw.of(0, 1, 1 << 20)
    return draw.of(0, 1, 2, 10, 100, -1)


def _text(name: str, draw: Draw, aims: Aims) -> str:
    if draw.wild():
        return draw.text(LONGEST_TEXT_BYTES)
    if name == "cluster_id":
        return aims.cluster.cluster_id
    return draw.of("", "x", *aims.cluster.machines)


def _uuid(name: str, draw: Draw, aims: Aims) -> bytes:
    return aims.topic_id(draw) if name == "topic_id" else draw.uuid()


LEAVES: dict[Any, Callable[[str, Draw, Aims], Any]] = {
    int: _integer,
    str: _text,
    bool: lambda name, draw, aims: draw.of(False, True),
    Uuid: _uuid,
    bytes: lambda name, draw, aims: draw.random.randbytes(draw.of(0, 1, 100)),
    Buffer: lambda name, draw, aims: draw.random.randbytes(draw.of(0, 1, 100)),
}


def at(row: Any, *path: int) -> Any:
    """Return the value at a path of positions, or None if the row has no such value."""
    for index in path:
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) <= index:
            return None
        row = row[index]
    return row
