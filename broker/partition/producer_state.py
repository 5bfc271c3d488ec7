"""The sequence numbers of a partition's idempotent producers: no record twice, none out of order
(KIP-98).

The last five batches of each producer are kept. A retry of one of them is answered with the offsets
of the first attempt. An unknown producer may begin with any sequence number (KIP-360), so
UNKNOWN_PRODUCER_ID is never answered. A producer is unknown if it is new, has expired, had to make
room for another one (MAX_PRODUCERS), or if its records were deleted before the states were rebuilt.

Every replica keeps these states from the batches that it appends. They follow from the log alone,
so a new leader knows what its predecessor knew about all replicated batches (R59 in
tests/scenarios).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from quorate.broker.partition.producer_copy import PRODUCERS_PER_STEP, ProducerCopy
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.protocol.errors import ErrorCode, KafkaError

BATCHES_KEPT = 5
"""Batches kept of each producer, as many as a producer may have in flight (as in Kafka)."""
MAX_PRODUCERS = 100_000
"""Maximum number of producers of one partition. Beyond it, the one that became known first is
removed."""
_MAX_SEQUENCE = 2**31 - 1
T = TypeVar("T")


class SentBatch(NamedTuple):
    """The sequence numbers and offsets of one batch of a producer, each range inclusive."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


class Producer:
    """The state of one producer: its epoch and its last batches, the oldest first."""

    __slots__ = ("batches", "epoch", "last_timestamp_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[SentBatch] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp_ms = -1


def last_sequence_of(header: BatchHeader) -> int:
    """Return the sequence number of the batch's last record. Sequence numbers wrap from 2^31 - 1 to
    0."""
    last = header.base_sequence + header.last_offset_delta
    return last if last <= _MAX_SEQUENCE else last - _MAX_SEQUENCE - 1


class ProducerStates:
    """The producers of one partition by producer id, in the order in which they became known.

    Invariant: there are at most MAX_PRODUCERS. Not thread-safe: while a load fills the states, only
    the disk's thread uses them, and afterwards only the event loop."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self._copies: list[ProducerCopy[Producer, Any]] = []
        """The copies in progress, usually none and at most one."""

    def copied(self, take: Callable[[int, Producer], T]) -> IncrementalWork[list[T] | None]:
        """Return the steps that copy all producers as of the first step, in any order. `take`
        copies one producer. The result is None if the states were truncated meanwhile.

        The steps run on the event loop. The states may change between them."""
        copy = ProducerCopy(self.producers, take)
        self._copies.append(copy)
        try:
            taken = yield from copy.steps()
        finally:
            self._copies.remove(copy)
        return None if copy.is_void else taken

    def __len__(self) -> int:
        return len(self.producers)

    def check(self, header: BatchHeader) -> SentBatch | None:
        """Return the earlier batch that `header` repeats, or None if the batch may be appended.

        It may be appended if it is the producer's next batch, the first one of a new producer
        epoch, or if the producer is unknown. Otherwise raise KafkaError (INVALID_PRODUCER_EPOCH or
        OUT_OF_ORDER_SEQUENCE_NUMBER). Only the last BATCHES_KEPT batches are known as repeated."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        last_sequence = last_sequence_of(header)
        if header.producer_epoch == producer.epoch:
            for sent in producer.batches:
                if (
                    sent.first_sequence == header.base_sequence
                    and sent.last_sequence == last_sequence
                ):
                    return sent
        self._check_epoch(producer, header)
        self._check_sequence(producer, header)
        return None

    def append(self, header: BatchHeader) -> None:
        """Note a batch that is in the log, with its final offsets. Nothing is checked: a follower
        accepts the batches that its leader has accepted."""
        producer = self.producers.get(header.producer_id)
        for copy in self._copies:
            copy.before_change(header.producer_id)
        if producer is None:
            self._make_room()
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.last_timestamp_ms = header.max_timestamp_ms
        if header.is_control:  # the end of a transaction, which has no sequence number
            return
        producer.batches.append(
            SentBatch(
                header.base_sequence,
                last_sequence_of(header),
                header.base_offset,
                header.last_offset,
                header.max_timestamp_ms,
            )
        )

    def rebuild(self, headers: Iterable[BatchHeader]) -> None:
        """Note the batches that have a producer id, in the order of the log."""
        for header in headers:
            if header.producer_id >= 0:
                self.append(header)

    def truncate_to(self, offset: int) -> bool:
        """Remove the batches that end at or above `offset`.

        Return False if this removed all known batches of a producer. Then only the log tells which
        batches the producer had sent before, so the states must be loaded again."""
        for copy in self._copies:
            copy.is_void = True
        whole = True
        for producer in self.producers.values():
            batches = producer.batches
            while batches and batches[-1].last_offset >= offset:
                batches.pop()
                whole = whole and bool(batches)
        return whole

    def last_offsets_below(self, offset: int, found: dict[int, int]) -> IncrementalWork[None]:
        """Return the steps that put the last offset of the newest known batch below `offset` of
        each producer into `found`, by producer id.

        The steps run on the event loop. A producer that sends BATCHES_KEPT batches meanwhile may be
        missing. No older batch of it is needed then."""
        for number, producer_id in enumerate(list(self.producers), 1):
            producer = self.producers.get(producer_id)
            for sent in reversed(producer.batches) if producer is not None else ():
                if sent.last_offset < offset:
                    found[producer_id] = sent.last_offset
                    break
            if number % PRODUCERS_PER_STEP == 0:
                yield

    def expire(self, wall_ms: int, expiration_ms: int) -> None:
        """Remove the producers whose last batch is at least `expiration_ms` old, by the largest
        timestamp of that batch, which the client may have set."""
        expired = [
            producer_id
            for producer_id, producer in self.producers.items()
            if wall_ms - producer.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in expired:
            self._remove(producer_id)

    def _make_room(self) -> None:
        """Remove the oldest known producer if the states are full. It may begin again (KIP-360)."""
        if len(self.producers) >= MAX_PRODUCERS:
            self._remove(next(iter(self.producers)))

    def _remove(self, producer_id: int) -> None:
        for copy in self._copies:
            copy.before_change(producer_id)
        del self.producers[producer_id]

    @staticmethod
    def _check_epoch(producer: Producer, header: BatchHeader) -> None:
        if header.producer_epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} sent epoch {header.producer_epoch} after epoch "
                f"{producer.epoch}",
            )

    @staticmethod
    def _check_sequence(producer: Producer, header: BatchHeader) -> None:
        first = header.base_sequence
        if header.producer_epoch != producer.epoch:
            in_order, last = first == 0, -1
        elif producer.batches:
            last = producer.batches[-1].last_sequence
            in_order = first == last + 1 or (first == 0 and last == _MAX_SEQUENCE)
        else:
            in_order, last = first == 0, -1
        if not in_order:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sent sequence {first} after {last} "
                f"(epoch {header.producer_epoch} after {producer.epoch})",
            )
