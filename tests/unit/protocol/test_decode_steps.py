"""`decode_steps` reads the same messages as `decode`, refuses the same bytes, and pauses in long
arrays.
"""

from __future__ import annotations

import random

import pytest

from quorate.quorum.protocol.codec import DecodeError, decode, decode_steps, encode
from quorate.quorum.protocol.incremental_reader_compiler import SLICE_BYTES, is_divided
from quorate.quorum.protocol.layout import layout
from quorate.quorum.protocol.reader_compiler import Role
from quorate.quorum.protocol.schemas.find_coordinator import FindCoordinatorRequest
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from quorate.quorum.protocol.wire import Message
from tests.unit.protocol.generated import every_message, value_of


def in_steps(cls: type[Message], version: int, data: bytes) -> tuple[Message, int, int]:
    """Return the message, its number of elements and the number of pauses."""
    steps, pauses = decode_steps(cls, version, memoryview(data)), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            message, elements = end.value
            return message, elements, pauses
        pauses += 1


def outcome(read: object, *arguments: object) -> object:
    assert callable(read)
    try:
        return read(*arguments)
    except DecodeError as error:
        return str(error)


def committed(topics: int, partitions: int) -> OffsetCommitRequest:
    parts = tuple(
        OffsetCommitRequestPartition(partition_index=each, committed_offset=each)
        for each in range(partitions)
    )
    return OffsetCommitRequest(
        group_id="g",
        member_id="",
        topics=tuple(
            OffsetCommitRequestTopic(name=f"t{each}", partitions=parts) for each in range(topics)
        ),
    )


def test_the_message_is_that_of_decode() -> None:
    for api, cls, version in every_message():
        flexible = version >= api.flexible_since
        for seed in range(3):
            data = encode(value_of(cls, version, flexible, random.Random(seed)), version)
            assert in_steps(cls, version, data)[0] == decode(cls, version, data), (cls, version)


def test_damage_is_refused_with_the_words_of_decode() -> None:
    chance = random.Random(1)
    for api, cls, version in every_message():
        flexible = version >= api.flexible_since
        data = bytearray(encode(value_of(cls, version, flexible, chance), version))
        cut = bytes(data[: chance.randrange(len(data) + 1)])
        for _ in range(3):
            if data:
                data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 128, 255))
        for damaged in (cut, bytes(data)):
            message = outcome(lambda *each: in_steps(*each)[0], cls, version, damaged)
            assert message == outcome(decode, cls, version, damaged), (cls, version, damaged)


@pytest.mark.parametrize("shape", [(20_000, 0), (1, 50_000), (2_000, 10)])
@pytest.mark.parametrize("version", [7, 8])
def test_a_long_array_is_read_in_slices(shape: tuple[int, int], version: int) -> None:
    topics, partitions = shape
    request = committed(topics, partitions)
    data = encode(request, version)
    message, elements, pauses = in_steps(OffsetCommitRequest, version, data)
    assert message == request
    assert elements == topics + topics * partitions
    assert pauses >= len(data) // (SLICE_BYTES + 100)


def test_a_long_array_of_numbers_is_read_in_slices() -> None:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=tuple(range(100_000)))
    request = OffsetFetchRequest(group_id="g", topics=(topic,))
    message, elements, pauses = in_steps(OffsetFetchRequest, 5, encode(request, 5))
    assert message == request
    assert elements == 100_001
    assert pauses >= 20


def test_the_bounds_of_elements_hold() -> None:
    keys = FindCoordinatorRequest(coordinator_keys=("",) * 50_001)
    with pytest.raises(DecodeError, match="50001 elements, at most 50000"):
        in_steps(FindCoordinatorRequest, 4, encode(keys, 4))
    offsets = committed(2, 130_000)
    with pytest.raises(DecodeError, match="too many elements in all"):
        in_steps(OffsetCommitRequest, 8, encode(offsets, 8))


def test_no_tagged_field_of_a_request_is_long() -> None:
    """Return the reader in steps does not pause inside of tagged fields."""
    for api, cls, version in every_message():
        if Role.of(cls) is Role.REQUEST:
            flexible = version >= api.flexible_since
            tagged = layout(cls, version, flexible).tagged
            assert not [each for each in tagged if is_divided(each, version, flexible)], cls
