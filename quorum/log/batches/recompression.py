"""Rewrites a batch with another codec, in steps (compression.type of a topic).

The records of a batch have the same bytes whatever the codec is, because their offsets and
timestamps are relative to the header. A batch is therefore rewritten without a look at its records:
the payload is decompressed, checked for its framing, and compressed again. The header keeps all
fields but the codec, the length and the CRC.

Kafka decodes and encodes each record. The result has the same records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    assemble,
    payload_of,
    read_header,
)
from quorate.quorum.log.batches.compression import Codec, compress, compressor, decompress
from quorate.quorum.log.batches.record_framing import check_framing
from quorate.quorum.seams import Buffer

STEP_BYTES = 128 * 1024
"""Bytes of the payload that one step compresses. zstd takes 0.1 s for them at its highest level,
and one or two ms at its default level."""
PRODUCER = "producer"
UNCOMPRESSED = "uncompressed"
"""The values of compression.type that are no codec's name."""
ATTRIBUTES_AT = 22
"""The position of the low byte of the attributes in a batch."""
LEVELS = ("gzip", "lz4", "zstd")
"""The codecs that have levels."""
LZ4_FAST = 9
"""Kafka's default level of lz4, with which Kafka uses the fast compressor."""


@dataclass(frozen=True, slots=True)
class Compression:
    """The codec of a topic's stored batches and its level, None for the codec's own default."""

    codec: Codec
    level: int | None = None

    @classmethod
    def of(cls, name: str, levels: dict[str, int]) -> Compression | None:
        """Return the compression that `name`, a compression.type, demands, or None for `producer`.

        `levels` has the levels of gzip, lz4 and zstd."""
        if name == PRODUCER:
            return None
        if name == UNCOMPRESSED:
            return cls(Codec.NONE)
        level = levels.get(name)
        if (name == "gzip" and level == -1) or (name == "lz4" and level == LZ4_FAST):
            level = None
        return cls(Codec[name.upper()], level)


def must_recompress(data: Buffer, compression: Compression) -> bool:
    """Return True if the batch in `data` has another codec. The level does not count, as in Kafka.

    Return False for control batches, which stay uncompressed, and for bytes that are too short for
    a batch, whose append is refused."""
    if len(data) <= HEADER_BYTES:
        return False
    attributes = data[ATTRIBUTES_AT]
    return attributes & CODEC_MASK != compression.codec and not attributes & CONTROL


def recompress(data: Buffer, compression: Compression) -> IncrementalWork[bytearray]:
    """Return the steps that rewrite the one batch in `data`, whose CRC is valid. The steps may run
    in any thread. The result is the new batch.

    Raise CorruptBatch if the payload cannot be decompressed within `largest(payload)` bytes, or if
    it does not consist of as many records as the header says."""
    header = read_header(data)
    payload = decompress(header.codec, payload_of(memoryview(data), 0, header))
    if len(payload) > STEP_BYTES:
        yield
    check_framing(payload, header.record_count)
    attributes = header.attributes & ~CODEC_MASK | compression.codec
    compressed = yield from compress_in_steps(payload, compression)
    return assemble(compressed, header._replace(attributes=attributes))


def compress_in_steps(payload: Buffer, compression: Compression) -> IncrementalWork[Buffer]:
    """Return the steps that compress a payload. One step takes STEP_BYTES of it."""
    codec, level = compression.codec, compression.level
    if codec is Codec.NONE:
        return payload
    if codec is Codec.SNAPPY:  # fast enough for one step
        return compress(codec, payload)
    writer: Any = compressor(codec, level)
    view = memoryview(payload)
    for start in range(0, len(view), STEP_BYTES):
        if start:
            yield
        writer.compress(bytes(view[start : start + STEP_BYTES]))
    return bytes(writer.finish())
