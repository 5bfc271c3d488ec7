"""The table of messages between nodes, and frames of them.

A frame is a msgpack array of messages. A message is `[kind, correlation id, field, field, ...]`.
The kind of a request is twice the number of its RPC, and that of its response is one more. Numbers
are never reused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import msgpack  # type: ignore[import-untyped]

from quorate.quorum import node_message_bounds as bounds
from quorate.quorum.controller.state import messages as controller
from quorate.quorum.raft import messages as raft
from quorate.quorum.rpc.hello import Hello, HelloReply, VersionRange
from quorate.quorum.rpc.msgpack_elements import array_at, check_elements, walk
from quorate.quorum.rpc.row_codec import reader, writer
from quorate.quorum.seams import Buffer, ProtocolError

MAX_MESSAGES_PER_FRAME = 4096
MAX_ARRAY_ELEMENTS = 100_000  # of one array, in a frame above SMALL_FRAME_BYTES
MAX_FRAME_ELEMENTS = 400_000
"""The elements of all arrays in a frame. The largest legitimate frame is an AlterPartition request
of 10,000 partitions with 10 replicas each: 380,000 elements."""
SMALL_FRAME_BYTES = 64 * 1024
"""Frames up to this size are unpacked without a count, because they hold at most 65,536 elements,
which take 4 MB. Each array in them may have MAX_MESSAGES_PER_FRAME elements. The size is also the
bound of a handshake's frame."""
NOT_MESSAGES = f"not an array of at most {MAX_MESSAGES_PER_FRAME} messages"
MAX_REASON = 200  # characters of the unpacker's error message
HEAD = 2  # kind and correlation id
ARRAY_32 = b"\xdd"  # msgpack's array with a four-byte length


Row = list[Any]
"""A message as msgpack has it: kind, correlation id, fields."""


class Message(Protocol):
    """Any dataclass of the table."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """The response to a request that this node does not serve. The request was not carried out."""

    reason: bounds.Message


class Rpc(NamedTuple):
    """One row of the table, with the versions that this node reads and writes. `request` is None
    for a response that answers any request."""

    number: int
    request: type | None
    response: type
    min_version: int = 0
    max_version: int = 0


RPCS = (
    Rpc(0, Hello, HelloReply),
    Rpc(1, None, Unsupported),
    Rpc(2, raft.VoteRequest, raft.VoteResponse),
    Rpc(3, raft.BeginQuorumEpochRequest, raft.BeginQuorumEpochResponse),
    Rpc(4, raft.EndQuorumEpochRequest, raft.EndQuorumEpochResponse),
    Rpc(5, raft.FetchRequest, raft.FetchResponse),
    Rpc(7, raft.UpdateVoterRequest, raft.UpdateVoterResponse),
    Rpc(6, raft.FetchSnapshotRequest, raft.FetchSnapshotResponse),
    Rpc(10, controller.BrokerRegistrationRequest, controller.BrokerRegistrationResponse),
    Rpc(11, controller.BrokerHeartbeatRequest, controller.BrokerHeartbeatResponse),
    Rpc(12, controller.AlterPartitionRequest, controller.AlterPartitionResponse),
    Rpc(13, controller.AllocateProducerIdsRequest, controller.AllocateProducerIdsResponse),
    Rpc(14, controller.EnvelopeRequest, controller.EnvelopeResponse),
    Rpc(15, controller.ReplicaLogsRequest, controller.ReplicaLogsResponse),
    Rpc(16, controller.AssignReplicasToDirsRequest, controller.AssignReplicasToDirsResponse),
    Rpc(17, controller.ControllerRegistrationRequest, controller.ControllerRegistrationResponse),
)

VERSIONS = tuple(
    VersionRange(rpc=rpc.number, minimum=rpc.min_version, maximum=rpc.max_version) for rpc in RPCS
)


class Kind(NamedTuple):
    """One message class with its number in frames, its writer and its reader.

    `write(number, correlation id, message)` returns a row. `read(row)` returns the message, and
    raises ProtocolError if the row does not match the class."""

    number: int
    cls: type
    write: Callable[[int, int, Any], Sequence[Any]]
    read: Callable[[Sequence[Any]], Any]


def _kinds() -> list[Kind]:
    numbered = [(2 * rpc.number, rpc.request) for rpc in RPCS if rpc.request is not None]
    numbered += [(2 * rpc.number + 1, rpc.response) for rpc in RPCS]
    return [Kind(number, cls, writer(cls, HEAD), reader(cls, HEAD)) for number, cls in numbered]


_KINDS = _kinds()
BY_NUMBER = {kind.number: kind for kind in _KINDS}
BY_CLASS = {kind.cls: kind for kind in _KINDS}
_pack = msgpack.Packer().pack  # reuses its buffer; only the event loop's thread packs


def packed(message: Message, correlation_id: int) -> bytes:
    """Return `message` as msgpack, for a frame. Its class must be in the table.

    Only the thread of the event loop may call this, because all calls share one buffer."""
    kind = BY_CLASS[type(message)]
    data: bytes = _pack(kind.write(kind.number, correlation_id, message))
    return data


def frame_header(messages: int) -> bytes:
    """Return the bytes of a frame before its messages. `messages` is their number."""
    return ARRAY_32 + messages.to_bytes(4, "big")


FRAME_HEADER_BYTES = len(frame_header(0))


def rows_of(frame: Buffer) -> list[Row]:
    """Return the rows of a frame's messages. Each one begins with a kind and a correlation id.

    Raise ProtocolError for any other content. The kind may be unknown, and the fields are not
    checked yet. In a frame above SMALL_FRAME_BYTES, the number of elements is checked before any is
    built."""
    if len(frame) <= SMALL_FRAME_BYTES:
        rows = _unpacked(frame, MAX_MESSAGES_PER_FRAME)
    else:
        check_elements(frame, MAX_FRAME_ELEMENTS)
        rows = _unpacked(frame, MAX_ARRAY_ELEMENTS)
    if type(rows) is not list or len(rows) > MAX_MESSAGES_PER_FRAME:
        raise ProtocolError(NOT_MESSAGES)
    for row in rows:
        _check_head(row)
    return rows


def _check_head(row: Any) -> None:
    if type(row) is not list or len(row) < HEAD or type(row[0]) is not int:
        raise ProtocolError("a message must be an array that starts with its kind")
    if type(row[1]) is not int:
        raise ProtocolError("a message's correlation id must be an integer")


def rows_later(frame: memoryview, skipped: int) -> Iterator[Row | None]:
    """Yield the rows of a frame after the first `skipped` messages, one at a time.

    Only one row is in memory, and its elements are counted before it is built. None is yielded
    while elements are counted, for a pause. Raise ProtocolError, as `rows_of` does, when the faulty
    message is reached."""
    count, at = array_at(frame)
    if not 0 <= count <= MAX_MESSAGES_PER_FRAME:
        raise ProtocolError(NOT_MESSAGES)
    left = MAX_FRAME_ELEMENTS
    for number in range(count):
        begin = at
        for at, counted in walk(frame, begin, left):  # noqa: B007
            yield None
        left -= counted
        if at > len(frame):
            raise ProtocolError("not a frame of messages: it ends early")
        if number >= skipped:
            row = _unpacked(frame[begin:at], MAX_ARRAY_ELEMENTS)
            _check_head(row)
            yield row
    if at != len(frame):
        raise ProtocolError("not a frame of messages: it goes on after the last one")


def _unpacked(frame: Buffer, max_array_len: int) -> Any:
    """Return the content of the frame. Raise ProtocolError if it is malformed.

    The error is raised outside of the except block, so that it refers to no other error, whose
    traceback would keep the frame."""
    try:
        return msgpack.unpackb(
            frame, max_array_len=max_array_len, max_map_len=0, max_ext_len=0, use_list=True
        )
    except (ValueError, msgpack.UnpackException) as error:
        reason = str(error)
    raise ProtocolError(f"not a frame of messages: {reason[:MAX_REASON]}")


def sole_message(frame: Buffer, expected: type) -> Any:
    """Return the single message of a handshake's frame. Raise ProtocolError if it is not a valid
    message of the class `expected`.

    A frame of more than SMALL_FRAME_BYTES is refused without parsing it."""
    if len(frame) > SMALL_FRAME_BYTES:
        raise ProtocolError(
            f"a frame of {len(frame)} bytes before the handshake, more than {SMALL_FRAME_BYTES}"
        )
    rows = rows_of(frame)
    kind = BY_NUMBER.get(rows[0][0]) if len(rows) == 1 else None
    if kind is None or kind.cls is not expected:
        raise ProtocolError(f"the first frame must contain one {expected.__name__}")
    return kind.read(rows[0])
