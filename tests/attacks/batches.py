"""Record batches with any header and any payload, and a checksum that is right."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c

from quorate.quorum.log.batches.batch import CRC_FROM, HEADER, HEADER_BYTES, PREFIX_BYTES
from quorate.quorum.log.batches.record import Record, encode_records
from quorate.quorum.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.attacks.target import TOPIC

WHEN_MS = 1_700_000_000_000
PRODUCE_TIMEOUT_MS = 5000
PRODUCE_VERSION = 9
LIST_OFFSETS_VERSION = 7
INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1


def records(count: int = 3, when_ms: int = WHEN_MS) -> bytes:
    made = [Record(at, when_ms + at, b"key", b"value-%d" % at) for at in range(count)]
    return bytes(encode_records(made))


def sealed(payload: bytes, **fields: Any) -> bytes:
    """Return a batch around `payload`; `fields` replace those of an ordinary header."""
    header: dict[str, Any] = {
        "base_offset": 0,
        "length": HEADER_BYTES - PREFIX_BYTES + len(payload),
        "leader_epoch": -1,
        "magic": 2,
        "crc": 0,
        "attributes": 0,
        "last_offset_delta": 2,
        "base_timestamp_ms": WHEN_MS,
        "max_timestamp_ms": WHEN_MS + 2,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": 3,
        **fields,
    }
    batch = bytearray(HEADER.pack(*header.values()) + payload)
    if "crc" not in fields:
        struct.pack_into(">I", batch, CRC_FROM - 4, crc32c(bytes(batch[CRC_FROM:])))
    return bytes(batch)


def produce(batch: bytes, partition: int, topic: str = TOPIC, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks,
        timeout_ms=PRODUCE_TIMEOUT_MS,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )


def list_offsets(partition: int, timestamp: int, topic: str = TOPIC) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),)
    )
