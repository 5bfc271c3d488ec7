"""Record batches through the whole broker: produced, listed by time, fetched, and cut off.

An input is the bytes of a batch. Its length and checksum are put right before it is sent, unless
the first byte says that they stay wrong.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from quorate.quorum.log.batches.batch import HEADER, HEADER_BYTES
from quorate.quorum.log.batches.compression import Codec, compress
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Wire
from tests.attacks.batches import (
    INT64_MAX,
    LIST_OFFSETS_VERSION,
    PRODUCE_VERSION,
    WHEN_MS,
    list_offsets,
    produce,
    records,
    sealed,
)
from tests.attacks.bombs import bombs
from tests.attacks.poison import POISON
from tests.attacks.raw import request
from tests.attacks.target import TOPIC
from tests.fuzz.mutations import mutated
from tests.fuzz.ports import Port, Shared, shared
from tests.fuzz.seals import sealed_batches
from tests.fuzz.target import Target
from tests.ports.node import BROKER_PORT

AS_IT_IS, SEALED = b"\x00", b"\x01"
FETCH_VERSION = 12
TIMES = (0, WHEN_MS, WHEN_MS + 1, INT64_MAX, -1, -2, -3)
FIELDS = (
    *("base_offset", "length", "leader_epoch", "magic", "attributes", "last_offset_delta"),
    *("base_timestamp_ms", "max_timestamp_ms", "producer_id", "producer_epoch"),
    *("base_sequence", "record_count"),
)
SIZES = dict(zip(FIELDS, (8, 4, 4, 1, 2, 4, 8, 8, 8, 2, 4, 4), strict=True))
COUNTS = (0, 1, 2, 1000)
ROOM = 1 << 20


def edges(name: str) -> tuple[int, ...]:
    top = 1 << (8 * SIZES[name] - 1)
    return (-top, -1, 0, 1, 2, 5, top - 2, top - 1)


def batch_requests(batch: bytes, partition: int) -> list[tuple[Message, int]]:
    """Return what makes the broker take the batch, and read it in every way."""
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=ROOM)
    fetch = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=TOPIC, partitions=(wanted,)),)
    )
    return [
        (produce(batch, partition), PRODUCE_VERSION),
        *((list_offsets(partition, when), LIST_OFFSETS_VERSION) for when in TIMES),
        (fetch, FETCH_VERSION),
    ]


class Produced(Port):
    def __init__(self, made: Shared) -> None:
        super().__init__(made, BROKER_PORT, Wire.KAFKA)
        self._turn = 0

    def feed(self, data: bytes) -> None:
        batch = data[1:] if data[:1] == AS_IT_IS else sealed_batches(data[1:])
        self._turn += 1
        for message, version in batch_requests(batch, self._turn % 3):
            super().feed(request(message, version))

    def systematic(self) -> Iterator[bytes]:
        for batch in POISON.values():
            yield AS_IT_IS + batch
            for size in range(0, len(batch), 7):
                yield SEALED + batch[:size]
        for codec, payload in bombs(quick=True).values():
            for count in COUNTS:
                delta = max(0, count - 1)
                batch = sealed(
                    payload, attributes=codec, record_count=count, last_offset_delta=delta
                )
                yield AS_IT_IS + batch
        for codec in range(8):
            for name in FIELDS:
                for edge in edges(name):
                    changed = bytearray(compressed(codec, records()))
                    put(changed, name, edge)
                    yield SEALED + bytes(changed)

    def drawn(self, chance: random.Random) -> bytes:
        payload = bytes(records(chance.choice((1, 3, 50))))
        if chance.random() < 0.7:
            payload = mutated(payload, chance)
        batch = bytearray(compressed(chance.randrange(5), payload))
        for _ in range(chance.randrange(3)):
            name = chance.choice(FIELDS)
            put(batch, name, chance.choice(edges(name)))
        made = bytes(batch)
        if chance.random() < 0.3:
            made = mutated(made, chance)
        return chance.choice((AS_IT_IS, SEALED, SEALED, SEALED)) + made


def compressed(codec: int, payload: bytes) -> bytes:
    """Return a good batch around `payload`; a codec that does not exist compresses nothing."""
    if codec == Codec.GZIP:
        payload = zlib.compress(payload, wbits=31)
    elif 0 < codec < len(Codec):
        payload = compress(Codec(codec), payload)
    return sealed(payload, attributes=codec)


def put(batch: bytearray, name: str, value: int) -> None:
    at = HEADER_OFFSETS[name]
    batch[at : at + SIZES[name]] = value.to_bytes(SIZES[name], "big", signed=True)


def header_offsets() -> dict[str, int]:
    found, position = {}, 0
    for name in FIELDS:
        found[name] = position
        position += SIZES[name]
        if name == "magic":
            position += 4
    assert position == HEADER_BYTES == HEADER.size
    return found


HEADER_OFFSETS = header_offsets()


@contextmanager
def produced_batches() -> Iterator[Target]:
    with shared() as made:
        yield Produced(made)
