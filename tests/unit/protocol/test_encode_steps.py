"""`encode_steps` returns the bytes of `encode`, and pauses inside of long arrays."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.protocol.codec import EncodeError, encode, encode_steps
from quorate.quorum.protocol.schemas.find_coordinator import Coordinator, FindCoordinatorResponse
from quorate.quorum.protocol.schemas.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.protocol.writer_compiler import SLICE_BYTES
from tests.unit.protocol.generated import every_message, value_of

PARTITION = MetadataResponsePartition(
    partition_index=1, leader_id=1, replica_nodes=(1, 2, 3), isr_nodes=(1, 2, 3)
)


def in_steps(message: Message, version: int) -> tuple[bytes, int]:
    """Return the encoded message and the number of pauses."""
    steps, pauses = encode_steps(message, version), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            data: bytes = end.value
            return data, pauses
        pauses += 1


def of_topics(topics: int, partitions: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=(),
        topics=tuple(
            MetadataResponseTopic(name=f"t{each}", partitions=(PARTITION,) * partitions)
            for each in range(topics)
        ),
    )


def test_the_bytes_are_those_of_encode() -> None:
    for api, cls, version in every_message():
        flexible = version >= api.flexible_since
        for seed in range(3):
            message = value_of(cls, version, flexible, random.Random(seed))
            assert in_steps(message, version)[0] == encode(message, version), (cls, version)


@pytest.mark.parametrize("shape", [(20_000, 0), (1, 20_000), (2_000, 10)])
@pytest.mark.parametrize("version", [8, 12])
def test_a_long_array_is_written_in_slices(shape: tuple[int, int], version: int) -> None:
    response = of_topics(*shape)
    data, pauses = in_steps(response, version)
    assert data == encode(response, version)
    assert pauses >= len(data) // (SLICE_BYTES + 100)


def test_a_short_message_takes_one_step() -> None:
    assert in_steps(of_topics(3, 10), 12)[1] == 0


def test_what_cannot_be_said_is_an_encode_error() -> None:
    long = Coordinator(key="k" * 32_768, node_id=1, host="h", port=1)
    response = FindCoordinatorResponse(coordinators=(long,))
    with pytest.raises(EncodeError, match="key has 32768 bytes"):
        in_steps(response, 4)
    with pytest.raises(EncodeError, match="key has 32768 bytes"):
        encode(response, 4)
