"""Node messages: round trips, growth at the end, and malformed input of a peer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey, Uuid
from quorate.quorum.node_message_bounds import Bytes, Items, Name, Offset, Range
from quorate.quorum.raft.messages import FetchRequest, FetchResponse
from quorate.quorum.rpc.messages import (
    BY_CLASS,
    BY_NUMBER,
    MAX_MESSAGES_PER_FRAME,
    RPCS,
    Kind,
    frame_header,
    packed,
    rows_of,
)
from quorate.quorum.rpc.row_codec import reader, writer
from quorate.quorum.seams import ProtocolError
from quorate.quorum.shapes import Shape, Type, shape_of

quick = settings(max_examples=40)
CLASSES = list(BY_CLASS)


def values(shape: Shape) -> st.SearchStrategy[Any]:
    """Return a strategy for the values that the declaration allows."""
    found = _values(shape)
    return st.none() | found if shape.optional else found


def _values(shape: Shape) -> st.SearchStrategy[Any]:
    match shape.kind, shape.bound:
        case Type.BOOL, _:
            return st.booleans()
        case Type.INT, Range(low, high):
            return st.integers(low, high)
        case Type.STR, Bytes(most):
            return st.text(max_size=min(most // 4, 40))
        case Type.BYTES, Bytes(most):
            return st.binary(max_size=min(most, 50))
        case Type.UUID, _:
            return st.binary(min_size=16, max_size=16)
        case Type.ARRAY, _:
            return st.lists(values(shape.parts[0][1]), max_size=4).map(tuple)
        case Type.TUPLE, _:
            return st.tuples(*(values(part) for _, part in shape.parts))
        case Type.STRUCT, _:
            assert shape.cls is not None
            return st.builds(shape.cls, **{name: values(part) for name, part in shape.parts})
    raise AssertionError(shape)


def unpacked(data: bytes) -> Any:
    (row,) = rows_of(frame_header(1) + data)
    return BY_NUMBER[row[0]].read(row)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_message_comes_back_as_it_was(cls: type) -> None:
    @quick
    @given(values(shape_of(cls)), st.integers(0, 2**63))
    def check(message: Any, correlation_id: int) -> None:
        data = packed(message, correlation_id)
        assert unpacked(data) == message
        assert msgpack.unpackb(data)[:2] == [BY_CLASS[cls].number, correlation_id]

    check()


def test_numbers_are_never_changed_nor_reused() -> None:
    numbers = {
        rpc.response.__name__: (rpc.number, rpc.min_version, rpc.max_version) for rpc in RPCS
    }
    assert (
        numbers.items()
        >= {
            "HelloReply": (0, 0, 0),
            "Unsupported": (1, 0, 0),
            "VoteResponse": (2, 0, 0),
            "BeginQuorumEpochResponse": (3, 0, 0),
            "EndQuorumEpochResponse": (4, 0, 0),
            "FetchResponse": (5, 0, 0),
            "BrokerRegistrationResponse": (10, 0, 0),
            "BrokerHeartbeatResponse": (11, 0, 0),
            "AlterPartitionResponse": (12, 0, 0),
            "AllocateProducerIdsResponse": (13, 0, 0),
            "EnvelopeResponse": (14, 0, 0),
        }.items()
    )
    assert len({rpc.number for rpc in RPCS}) == len(RPCS)


def test_a_bytearray_and_a_memoryview_are_buffers() -> None:
    for records in (bytearray(b"abc"), memoryview(b"abc")):
        response = FetchResponse(error=0, epoch=1, leader_id=1, high_watermark=2, records=records)
        assert unpacked(packed(response, 1)).records == b"abc"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    name: Name
    ids: Annotated[tuple[Offset, ...], Items(3)] = (7,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Old:
    number: Offset
    inner: Inner


@dataclasses.dataclass(frozen=True, kw_only=True)
class New:
    number: Offset
    inner: Inner
    later: Annotated[tuple[Inner, ...], Items(3)] = (Inner(name="a"),)
    last: EpochOffset | None = EpochOffset(1, 2)
    pairs: Annotated[tuple[tuple[Offset, Name], ...], Items(3)] = ((1, "x"),)


def wire(row: Any) -> list[Any]:
    unpacked: list[Any] = msgpack.unpackb(msgpack.packb(row))
    return unpacked


def test_a_newer_sender_says_more() -> None:
    new = New(number=5, inner=Inner(name="b"), later=())
    assert reader(Old)(wire(writer(New)(new))) == Old(number=5, inner=Inner(name="b"))


def test_an_older_sender_says_less() -> None:
    old = Old(number=5, inner=Inner(name="b", ids=()))
    assert reader(New)(wire(writer(Old)(old))) == New(number=5, inner=Inner(name="b", ids=()))
    assert reader(New)([5, ["b"], []]) == New(number=5, inner=Inner(name="b"), later=())


def test_a_required_field_is_missing() -> None:
    with pytest.raises(ProtocolError, match="New has 1 fields, 2 are required"):
        reader(New)([5])
    with pytest.raises(ProtocolError, match="Inner has 0 fields, 1 are required"):
        reader(New)([5, []])


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (["5", ["b"]], "New.number: expected int, got str"),
        ([True, ["b"]], "New.number: expected int, got bool"),
        ([5, "b"], "New.inner: expected Inner, got str"),
        ([5, [b"b"]], "Inner.name: expected str, got bytes"),
        ([5, ["b", [1, None]]], r"Inner.ids\[\]: expected int, got NoneType"),
        ([5, ["b"], [3]], r"New.later\[\]: expected Inner, got int"),
        ([5, ["b"], [], [1]], "EpochOffset has 1 fields"),
        ([5, ["b"], [], None, [[1, "x", 2]]], r"New.pairs\[\]: expected tuple"),
    ],
)
def test_a_value_of_another_type_is_named(row: list[Any], field: str) -> None:
    with pytest.raises(ProtocolError, match=field):
        reader(New)(row)


def test_a_uuid_has_sixteen_bytes() -> None:
    request = FetchRequest(
        cluster_id="c",
        replica=ReplicaKey(1, Uuid(b"short")),
        epoch=1,
        offset=2,
        last_fetched_epoch=1,
        max_wait_ms=500,
        max_bytes=1,
        high_watermark=0,
    )
    with pytest.raises(ProtocolError, match="directory_id"):
        unpacked(packed(request, 1))
    request = dataclasses.replace(request, replica=ReplicaKey(1, ZERO_UUID))
    assert unpacked(packed(request, 1)) == request


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x91",
        b"\x01",
        b"\x91\x90",
        b"\x91\x91\x01",
        b"\x91\x92\xa1a\x01",
        b"\x91\x92\x01\xa1a",
        b"\x91" * 100_000,  # a tower of arrays
        b"\xdd\xff\xff\xff\xff",  # a promise of four thousand million elements
        b"\x91\xdd\xff\xff\xff\xff",
        b"\x91\x93\x01\x01\x81\x01\x02",  # a map
        b"\x91\x93\x01\x01\xd6\xff\0\0\0\0",  # a timestamp
        b"\x91\x93\x01\x01\xa1\xff",  # not UTF-8
        b"\x90\x90",
        frame_header(MAX_MESSAGES_PER_FRAME + 1) + b"\x92\x01\x01" * (MAX_MESSAGES_PER_FRAME + 1),
    ],
    ids=lambda frame: repr(frame[:12]),
)
def test_no_frame_of_messages(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        rows_of(frame)


@settings(quick, max_examples=300)
@given(st.data())
def test_a_damaged_frame_is_at_worst_a_protocol_error(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(CLASSES))
    frame = bytearray(frame_header(1) + packed(data.draw(values(shape_of(cls))), 3))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        for row in rows_of(frame):
            kind: Kind | None = BY_NUMBER.get(row[0])
            if kind is not None:
                kind.read(row)
    except ProtocolError:
        pass


def test_kinds_tell_requests_from_responses() -> None:
    for rpc in RPCS:
        assert BY_CLASS[rpc.response].number % 2 == 1
        if rpc.request is not None:
            assert BY_CLASS[rpc.request].number % 2 == 0


def edges(shape: Shape) -> list[Any]:
    """Return values just outside of a bound, as msgpack carries them."""
    match shape.kind, shape.bound:
        case Type.INT, Range(low, high):
            return [each for each in (low - 1, high + 1) if -(2**63) <= each < 2**64]
        case Type.STR, Bytes(most):
            return ["x" * (most + 1), "\u20ac" * (most // 3 + 1)]
        case Type.BYTES, Bytes(most):
            return [bytes(most + 1)]
        case Type.ARRAY, Items(most):
            return [[None] * (most + 1)]
        case Type.UUID, _:
            return [bytes(15), bytes(17)]
    return []


def plausible(shape: Shape) -> Any:
    """Return a value that the declaration allows, as msgpack carries it."""
    match shape.kind, shape.bound:
        case Type.INT, Range(low, _):
            return low
        case Type.STR, _:
            return ""
        case Type.BYTES, _:
            return b""
        case Type.UUID, _:
            return bytes(16)
        case Type.BOOL, _:
            return False
        case Type.ARRAY, _:
            return [plausible(shape.parts[0][1])]
    return [plausible(part) for _, part in shape.parts]


def with_one_edge(shape: Shape) -> Iterator[tuple[str, Any]]:
    """Return the plausible value of `shape` with one part outside of its bound."""
    for edge in edges(shape):
        yield shape.label, edge
    if shape.kind is Type.ARRAY:
        for label, inner in with_one_edge(shape.parts[0][1]):
            yield label, [inner]
    elif shape.parts:
        whole = plausible(shape)
        for position, (_, part) in enumerate(shape.parts):
            for label, inner in with_one_edge(part):
                yield label, [*whole[:position], inner, *whole[position + 1 :]]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_bound_of_every_field_is_checked(cls: type) -> None:
    shape = shape_of(cls)
    kind = BY_CLASS[cls]
    kind.read([kind.number, 0, *plausible(shape)])  # what is plausible is read
    for label, row in with_one_edge(shape):
        with pytest.raises(ProtocolError, match=re.escape(label)):
            kind.read([kind.number, 0, *row])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unbounded:
    number: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class BoundedWrongly:
    name: Annotated[str, Range(0, 5)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnboundedItems:
    numbers: tuple[Offset, ...]


@pytest.mark.parametrize("cls", [Unbounded, BoundedWrongly, UnboundedItems])
def test_a_field_without_a_bound_does_not_compile(cls: type) -> None:
    with pytest.raises(TypeError, match=f"{cls.__name__}.* has no bound"):
        reader(cls)


def test_a_refusal_holds_nothing_of_the_message() -> None:
    with pytest.raises(ProtocolError) as caught:
        reader(Inner)(["x" * 10_000])
    assert len(str(caught.value)) < 200
