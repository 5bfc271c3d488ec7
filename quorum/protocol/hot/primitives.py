"""Readers and writers of the wire types in Produce and Fetch, in the classic and in the flexible
encoding (KIP-482).

In all functions, `position` is an index into the buffer, and each reader returns the position after
the value. Writers append to `out`. Numbers are big-endian. `flexible` is True for the flexible
encoding, in which lengths are varints and structs end with tagged fields.

Every reader may raise IndexError or struct.error if the buffer ends within a number or a length. A
reader raises DecodeError if the buffer ends within the content that a length announces. A string
that is not UTF-8 raises UnicodeDecodeError. Parsers are therefore wrapped in `guarded` or
`guarded_steps`, which turn the other errors into DecodeError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from quorate.quorum.clipped import clip_bytes
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.field_bounds import (
    ERROR_TEXT,
    MAX_STRING_BYTES,
    MAX_TAGGED_FIELDS,
    Bound,
)
from quorate.quorum.protocol.headers import skip_tags
from quorate.quorum.protocol.varint import DecodeError, EncodeError, read_uvarint, write_uvarint
from quorate.quorum.seams import Buffer

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")
UUID_BYTES = 16
MAX_UTF8_BYTES = 4
"""The largest number of bytes of one character in UTF-8."""


class TopicPartitionEntry(Protocol):
    """The entry of one partition in the flat list of a request or response."""

    @property
    def topic(self) -> str:
        """Return the name of the topic, or "" if the version names topics by id."""

    @property
    def topic_id(self) -> Uuid:
        """Return the id of the topic, or ZERO_UUID if the version names topics by name."""


P = TypeVar("P", bound=TopicPartitionEntry)
R = TypeVar("R")
T = TypeVar("T")
STEP_PARTITIONS = 64
"""The number of partitions that one step of a long request or response handles."""


class NodeEndpoint(NamedTuple):
    """The address of a leader that a response names, so that the client can connect to it without
    new metadata (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def guarded(what: str, parse: Callable[[memoryview, int], R]) -> Callable[[memoryview, int], R]:
    """Return a function that calls `parse(body, version)`.

    The function raises DecodeError if the body is cut off or contains invalid UTF-8. `what` is the
    name of the message in its errors."""

    def guarded_parse(body: memoryview, version: int) -> R:
        try:
            return parse(body, version)
        except (IndexError, struct.error):
            raise DecodeError(f"{what} v{version} is cut off: {len(body)} bytes") from None
        except UnicodeDecodeError as error:
            raise DecodeError(f"{what} v{version} contains invalid UTF-8: {error}") from None

    return guarded_parse


def guarded_steps(
    what: str, parse: Callable[[memoryview, int], IncrementalWork[R]]
) -> Callable[[memoryview, int], IncrementalWork[R]]:
    """Return the function of `guarded` for a `parse` that works in steps. The errors are raised
    while the steps run."""

    def guarded_parse(body: memoryview, version: int) -> IncrementalWork[R]:
        try:
            return (yield from parse(body, version))
        except (IndexError, struct.error):
            raise DecodeError(f"{what} v{version} is cut off: {len(body)} bytes") from None
        except UnicodeDecodeError as error:
            raise DecodeError(f"{what} v{version} contains invalid UTF-8: {error}") from None

    return guarded_parse


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield slices of `items` with STEP_PARTITIONS items each. The last slice may be shorter."""
    for start in range(0, len(items), STEP_PARTITIONS):
        yield items[start : start + STEP_PARTITIONS]


def by_topic_steps(partitions: Sequence[P]) -> IncrementalWork[list[tuple[str, Uuid, list[P]]]]:
    """Return the result of `by_topic`, in steps."""
    groups: list[tuple[str, Uuid, list[P]]] = []
    name: tuple[str, Uuid] | None = None
    for at, each in enumerate(partitions, 1):
        if (each.topic, each.topic_id) != name:
            name = each.topic, each.topic_id
            groups.append((*name, []))
        groups[-1][2].append(each)
        if at % STEP_PARTITIONS == 0:
            yield
    return groups


def by_topic(partitions: Sequence[P]) -> list[tuple[str, Uuid, list[P]]]:
    """Return (topic, topic id, partitions) for each run of consecutive partitions of one topic.

    The order does not change. A topic whose partitions are not consecutive appears several
    times."""
    if len(partitions) == 1:
        (only,) = partitions
        return [(only.topic, only.topic_id, [only])]
    groups = groupby(partitions, key=lambda each: (each.topic, each.topic_id))
    return [(topic, topic_id, list(group)) for (topic, topic_id), group in groups]


def read_length(buffer: Buffer, position: int, flexible: bool) -> tuple[int, int]:
    """Return the length of an array or of record bytes. A negative length means null."""
    if not flexible:
        return INT32.unpack_from(buffer, position)[0], position + 4
    length = buffer[position]
    if length < 0x80:
        return length - 1, position + 1
    length, position = read_uvarint(buffer, position)
    return length - 1, position


def read_count(buffer: Buffer, position: int, flexible: bool) -> tuple[int, int]:
    """Return the length of an array.

    Raise DecodeError if it is null, or if the buffer has fewer bytes left than the array has
    elements."""
    count, position = read_length(buffer, position, flexible)
    if not 0 <= count <= len(buffer) - position:
        raise DecodeError(f"an array of {count} elements in {len(buffer) - position} bytes")
    return count, position


def check_elements(kind: Bound, so_far: int, more: int) -> None:
    """Raise DecodeError if `so_far` + `more` elements exceed `kind.limit`.

    A parser calls it before it reads `more` elements, because a nested array is bounded over the
    whole message."""
    if so_far + more > kind.limit:
        raise DecodeError(f"{so_far + more} {kind.name}, at most {kind.limit}")


def read_string(buffer: Buffer, position: int, flexible: bool) -> tuple[str | None, int]:
    """Return a string, or None for null. Raise DecodeError if its text is longer than
    MAX_STRING_BYTES or cut off, UnicodeDecodeError if it is not UTF-8."""
    if flexible:
        length, position = read_length(buffer, position, True)
    else:
        length, position = INT16.unpack_from(buffer, position)[0], position + 2
    if length < 0:
        return None, position
    end = position + length
    if length > MAX_STRING_BYTES:
        raise DecodeError(f"a string of {length} bytes, at most {MAX_STRING_BYTES}")
    if end > len(buffer):
        raise DecodeError(f"a string of {length} bytes, {len(buffer) - position} are left")
    return str(buffer[position:end], "utf-8"), end


def read_bytes(buffer: memoryview, position: int, flexible: bool) -> tuple[memoryview | None, int]:
    """Return the bytes of records, or None for null. Raise DecodeError if they are cut off.

    The result is a view, which keeps the whole buffer in memory."""
    length, position = read_length(buffer, position, flexible)
    if length < 0:
        return None, position
    end = position + length
    if end > len(buffer):
        raise DecodeError(f"{length} bytes of records, {len(buffer) - position} are left")
    return buffer[position:end], end


def read_topic(buffer: Buffer, position: int, flexible: bool, by_id: bool) -> tuple[str, Uuid, int]:
    """Return the name and the id of a topic, and the position after it.

    If `by_id` is True, the buffer holds the id, and the name is "". Otherwise the buffer holds the
    name, and the id is ZERO_UUID. Raise DecodeError if the id or the name is cut off, or the name
    is null. The errors of `read_string` apply to the name."""
    if by_id:
        end = position + UUID_BYTES
        if end > len(buffer):
            raise DecodeError(f"a topic id at {position}, but the end is at {len(buffer)}")
        return "", Uuid(bytes(buffer[position:end])), end
    name, position = read_string(buffer, position, flexible)
    if name is None:
        raise DecodeError(f"a topic name at {position} is null")
    return name, ZERO_UUID, position


def read_tags(buffer: Buffer, position: int) -> int:
    """Return the position after the tagged fields, whose contents are ignored. Raise DecodeError if
    they are malformed."""
    return position + 1 if buffer[position] == 0 else skip_tags(buffer, position)


def each_tag(buffer: Buffer, position: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return the tagged fields as (tag, start, end), and the position after them all.

    `buffer[start:end]` is the content of one field. Raise DecodeError if there are more than
    MAX_TAGGED_FIELDS, or if a field is cut off."""
    count, position = read_uvarint(buffer, position)
    if count > MAX_TAGGED_FIELDS:
        raise DecodeError(f"{count} tagged fields, at most {MAX_TAGGED_FIELDS}")
    tags = []
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        end = position + size
        if end > len(buffer):
            raise DecodeError(f"tag {tag} of {size} bytes, {len(buffer) - position} are left")
        tags.append((tag, position, end))
        position = end
    return tags, position


def write_length(out: bytearray, length: int, flexible: bool) -> None:
    """Append the length of an array or of bytes. The length -1 means null."""
    if not flexible:
        out += INT32.pack(length)
    elif length < 0x7F:
        out.append(length + 1)
    else:
        write_uvarint(out, length + 1)


def write_string(out: bytearray, text: str | None, flexible: bool) -> None:
    """Append a string, or null for None. Raise EncodeError if it has more than MAX_STRING_BYTES
    bytes."""
    data = b"" if text is None else text.encode()
    if len(data) > MAX_STRING_BYTES:
        raise EncodeError(f"a string has {len(data)} bytes, at most {MAX_STRING_BYTES}")
    length = -1 if text is None else len(data)
    if flexible:
        write_length(out, length, True)
    else:
        out += INT16.pack(length)
    out += data


def write_error_text(out: bytearray, text: str | None, flexible: bool) -> None:
    """Append an error text, or null for None. A text that is longer than ERROR_TEXT is shortened at
    the boundary of a character."""
    if text is not None and len(text) * MAX_UTF8_BYTES > ERROR_TEXT.limit:
        text = clip_bytes(text.encode(), ERROR_TEXT.limit).decode()
    write_string(out, text, flexible)


def write_topic(out: bytearray, topic: str, topic_id: Uuid, flexible: bool, by_id: bool) -> None:
    """Append the id of a topic if `by_id` is True, otherwise its name."""
    if by_id:
        out += topic_id
    else:
        write_string(out, topic, flexible)


def write_tag(out: bytearray, tag: int, body: Buffer) -> None:
    """Append one tagged field: its number, its size and `body`. The caller writes the number of
    tagged fields before the first one."""
    write_uvarint(out, tag)
    write_uvarint(out, len(body))
    out += body


def write_endpoints(out: bytearray, endpoints: Sequence[NodeEndpoint]) -> None:
    """Append the tagged fields of a flexible response, which are its last part.

    Write tag 0 with the endpoints, or an empty section if there are no endpoints."""
    if not endpoints:
        out.append(0)
        return
    body = bytearray()
    write_length(body, len(endpoints), True)
    for endpoint in endpoints:
        body += INT32.pack(endpoint.node_id)
        write_string(body, endpoint.host, True)
        body += INT32.pack(endpoint.port)
        write_string(body, endpoint.rack, True)
        body.append(0)
    out.append(1)
    write_tag(out, 0, body)
