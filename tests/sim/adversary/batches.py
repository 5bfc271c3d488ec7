"""Record batches that no broker may store, although their CRC is right. The CRC alone proves
nothing about a client's intent.

A drawn batch may turn out to be valid. Its values therefore begin with FOREIGN. Its producer id is
far from those that the cluster allocates, so that it disturbs no good producer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from crc32c import crc32c

from quorate.quorum.log.batches.batch import CRC_FROM, HEADER, HEADER_BYTES, build_batch
from quorate.quorum.log.batches.compression import Codec, compress
from quorate.quorum.log.batches.record import Record
from tests.sim.adversary.values import Draw
from tests.sim.clients.history import FOREIGN
from tests.sim.world.clock import WALL_EPOCH_MS
from tests.sim.world.cluster import SimCluster

BOMB_BYTES = 8 << 20
FAR_PRODUCER_ID = 1 << 40
CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
# The index and the wire type of header fields. The prefix, the magic and the CRC are left out,
# because `sealed` makes length and CRC fit.
FIELDS = {
    5: "int16",  # attributes
    6: "int32",  # last offset delta
    7: "int64",  # base timestamp
    8: "int64",  # maximum timestamp
    9: "int64",  # producer id
    10: "int16",  # producer epoch
    11: "int32",  # base sequence
    12: "int32",  # record count
}
PRODUCER_ID = 9
TIMESTAMPS = (7, 8)


def poison(draw: Draw, cluster: SimCluster) -> bytes:
    """Return the bytes of a Produce request's records, one batch or several."""
    kind: Callable[[Draw, SimCluster], bytes] = draw.of(
        _mutated, _mutated, _mutated, _garbage, _compressed_garbage, _bomb, _cut, _noise, _twice
    )
    return kind(draw, cluster)


def _valid(draw: Draw, cluster: SimCluster, codec: Codec = Codec.NONE) -> bytes:
    wall_ms = WALL_EPOCH_MS + int(cluster.loop.time() * 1000)
    count = draw.of(1, 1, 3, 50)
    records = [Record(at, wall_ms + at, None, FOREIGN + b"%d" % at) for at in range(count)]
    return bytes(build_batch(records, leader_epoch=-1, codec=codec))


def sealed(batch: bytes) -> bytes:
    """Return the batch with a length and a CRC that fit its bytes."""
    head = list(HEADER.unpack_from(batch))
    head[1] = len(batch) - 12
    sealed = bytearray(HEADER.pack(*head) + batch[HEADER_BYTES:])
    sealed[17:21] = crc32c(memoryview(sealed)[CRC_FROM:]).to_bytes(4, "big")
    return bytes(sealed)


def _mutated(draw: Draw, cluster: SimCluster) -> bytes:
    """Set one to three header fields to values at the edges of their types."""
    batch = _valid(draw, cluster, draw.of(Codec.NONE, Codec.NONE, *CODECS))
    head = list(HEADER.unpack_from(batch))
    for _ in range(draw.of(1, 1, 2, 3)):
        field = draw.of(*FIELDS)
        value = draw.integer(FIELDS[field])
        if field == PRODUCER_ID and value >= 0:
            value |= FAR_PRODUCER_ID
        if field in TIMESTAMPS and 0 <= value < WALL_EPOCH_MS:
            value = -2  # an ancient record is legal, but retention may delete it
        head[field] = value
    return sealed(HEADER.pack(*head) + batch[HEADER_BYTES:])


def _garbage(draw: Draw, cluster: SimCluster) -> bytes:
    """Make the payload something else than a sequence of records."""
    batch = bytearray(_valid(draw, cluster))
    if draw.random.getrandbits(1):
        batch[HEADER_BYTES:] = draw.random.randbytes(draw.of(0, 1, 40, 5000))
    else:
        batch[draw.random.randrange(HEADER_BYTES, len(batch))] ^= draw.of(0x80, 0xFF, 1)
    return sealed(bytes(batch))


def _compressed_garbage(draw: Draw, cluster: SimCluster) -> bytes:
    codec = draw.of(*CODECS)
    batch = bytearray(_valid(draw, cluster, codec))
    inner = draw.random.randbytes(draw.of(1, 60, 3000))
    whole = compress(codec, inner)
    batch[HEADER_BYTES:] = draw.of(whole, whole[: len(whole) // 2], inner, b"")
    return sealed(bytes(batch))


def _bomb(draw: Draw, cluster: SimCluster) -> bytes:
    codec = draw.of(*CODECS)
    batch = bytearray(_valid(draw, cluster, codec))
    batch[HEADER_BYTES:] = _bomb_payload(codec)
    return sealed(bytes(batch))


@cache
def _bomb_payload(codec: Codec) -> bytes:
    return compress(codec, bytes(BOMB_BYTES))


def _cut(draw: Draw, cluster: SimCluster) -> bytes:
    batch = _valid(draw, cluster)
    return batch[: draw.random.randrange(len(batch))]


def _noise(draw: Draw, cluster: SimCluster) -> bytes:
    return draw.random.randbytes(draw.of(0, 1, 11, 61, 4000))


def _twice(draw: Draw, cluster: SimCluster) -> bytes:
    """Put a valid batch before a poisonous one. A broker may store neither of them."""
    return _valid(draw, cluster) + _mutated(draw, cluster)
