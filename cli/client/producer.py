"""A blocking, idempotent producer for one topic: a retry never writes a record twice (KIP-98)."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from quorate.cli.client.admin import RETRY_DELAY_S, Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable
from quorate.cli.client.partitions import Partitions
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

KeyValue = tuple[bytes | None, bytes]

NO_LEADER = "it has no leader. `quorate status` says why"
MURMUR_SEED = 0x9747B28C
MASK = 0xFFFFFFFF


class Producer:
    """A producer for one topic, owned by one thread.

    It creates the topic on demand, if the cluster allows that. It sends one batch at a time and
    numbers the records of each partition. The broker uses these sequence numbers to discard a batch
    that it has already appended. After an error of `send`, do not send more: the next batch gets
    the numbers of the one that failed, which the broker may have appended."""

    def __init__(
        self, admin: Admin, topic: str, *, acks: int = -1, codec: Codec = Codec.NONE
    ) -> None:
        """Look the topic up and get a producer id.

        Raise Refused or NotReachable if either fails."""
        self._admin = admin
        self._acks = acks
        self._codec = codec
        self._partitions = Partitions(admin, topic, create=True)
        self._random = random.Random()
        self._sequences: dict[int, int] = {}
        answer = admin.ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
            InitProducerIdResponse,
            lambda answer: [answer.error_code],
        )
        check(answer.error_code, None, "producer id")
        self._producer = answer.producer_id, answer.producer_epoch

    def send(self, records: Sequence[KeyValue]) -> None:
        """Send the records, one batch per partition, and return when all batches are acknowledged.

        The batches are sent one after another. One that the topic finds too large is split. All
        records of one call without a key go to the same random partition. Raise Refused on an
        error that is not transient, and NotReachable if a batch is not acknowledged in time.
        That batch and the ones before it may be written."""
        numbers = self._partitions.numbers
        unkeyed = self._random.choice(numbers)
        by_partition: dict[int, list[KeyValue]] = {}
        for key, value in records:
            number = unkeyed if key is None else numbers[partition_of(key, len(numbers))]
            by_partition.setdefault(number, []).append((key, value))
        for partition, chosen in by_partition.items():
            self._send_batch(partition, chosen)

    def _send_batch(self, partition: int, records: Sequence[KeyValue]) -> None:
        sequence = self._sequences.get(partition, 0)
        now_ms = int(time.time() * 1000)
        batch = build_batch(
            [Record(n, now_ms, key, value) for n, (key, value) in enumerate(records)],
            leader_epoch=-1,
            codec=self._codec,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topic = TopicProduceData(
            name=self._partitions.topic,
            topic_id=self._partitions.topic_id,
            partition_data=(data,),
        )
        request = ProduceRequest(
            acks=self._acks, timeout_ms=self._admin.timeout_ms, topic_data=(topic,)
        )
        if self._acknowledged(partition, request, divisible=len(records) > 1):
            self._sequences[partition] = (sequence + len(records)) % 2**31
            return
        middle = len(records) // 2
        self._send_batch(partition, records[:middle])
        self._send_batch(partition, records[middle:])

    def _acknowledged(self, partition: int, request: ProduceRequest, *, divisible: bool) -> bool:
        """Send the request until it is acknowledged, and return True. Return False if the batch is
        too large and `divisible`; nothing of it is written then."""
        deadline = time.monotonic() + self._admin.timeout_ms / 1000
        while True:
            code, text = self._sent(self._partitions.leader(partition), request)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                return True
            if code == ErrorCode.MESSAGE_TOO_LARGE and divisible:
                return False
            what = f"topic {self._partitions.topic}, partition {partition}"
            if not ErrorCode.of(code).retriable:
                check(code, text, what)
            if time.monotonic() > deadline:
                raise NotReachable(f"{what}: {ErrorCode.of(code).name}: {text or ''}")
            time.sleep(RETRY_DELAY_S)
            self._partitions.refresh()

    def _sent(self, leader: int, request: ProduceRequest) -> tuple[int, str | None]:
        """Send the request to the leader (-1: none), and return the error code and its text."""
        if leader < 0:
            return ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
        try:
            answer = self._admin.ask_node(leader, request, ProduceResponse)
        except ConnectionLost as error:
            return ErrorCode.NETWORK_EXCEPTION, str(error)
        found = answer.responses[0].partition_responses[0]
        return found.error_code, found.error_message


def partition_of(key: bytes, count: int) -> int:
    """Return the index of the partition to which Kafka's default partitioner assigns the key."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """Return Kafka's 32-bit murmur2 hash of the key."""
    multiplier = 0x5BD1E995
    hashed = (MURMUR_SEED ^ len(data)) & MASK
    whole = len(data) // 4 * 4
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * multiplier & MASK
        word = (word ^ word >> 24) * multiplier & MASK
        hashed = (hashed * multiplier & MASK) ^ word
    if len(data) > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * multiplier & MASK
    hashed = (hashed ^ hashed >> 13) * multiplier & MASK
    return hashed ^ hashed >> 15
