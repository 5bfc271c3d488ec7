"""The record of the clients' writes: the numbers of records, and their acknowledgements.

Two clients write. The roaming client sends to the present leaders, and the pinned client always
sends to one broker. Each client has numbers of its own. Record n goes to partition n modulo the
number of partitions (see `comparison.py`). A value is a function of its record's number, so the
ledger stores no values.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import overload

from quorate.cli.chaos.timeline.outage import Gap
from quorate.cli.chaos.workload.comparison import NOT_ACKNOWLEDGED
from quorate.cli.chaos.workload.latencies import Samples
from quorate.cli.chaos.workload.read_delays import ReadDelays

CLIENTS = 2
"""The number of clients. They are numbered from 0: ROAMING, then PINNED."""
ROAMING, PINNED = range(CLIENTS)
"""The client that follows the leaders, and the client that stays with one broker."""
MAX_RECORDS = 50_000_000
"""Every record number is lower than this bound, which limits `acknowledged` to about 400 MB."""
GROWTH = 1 << 16
"""The number of entries by which `acknowledged` grows."""


@dataclass(slots=True)
class Ledger:
    """All records sent and acknowledged in one run, owned by the event loop of the clients."""

    partitions: int
    record_bytes: int
    key_bytes: int = 0
    """The least size of a key. Shorter numbers get leading zeros."""
    acknowledged: array[int] = field(default_factory=lambda: array("q"))
    """The acknowledged offset of each record by its number, or NOT_ACKNOWLEDGED (`comparison.py`).
    """
    sent: int = 0
    """The number of records for which `take` returned a number."""
    confirmed: int = 0
    """The number of acknowledged records."""
    confirmed_s: dict[int, float] = field(default_factory=dict)
    """The time of the last acknowledgement by partition, in s on the monotonic clock."""
    acknowledged_s: dict[int, array[float]] = field(default_factory=dict)
    """The times of all acknowledged batches by partition, in s on the monotonic clock."""
    delays: ReadDelays = field(default_factory=ReadDelays)
    """The batches that the consumer of the run has not read yet."""
    latencies: Samples = field(default_factory=Samples)
    """The times from the first sending of a batch of the roaming client to its acknowledgement."""
    outages: list[Gap] = field(default_factory=list)
    """The intervals in which a batch of the roaming client waited longer than OUTAGE_S of
    `writer.py`. The writer appends them."""
    failures: list[str] = field(default_factory=list)
    """The fatal errors of the roaming client, as text. A fatal error (FATAL in `writer.py`) shows
    that acknowledged records are gone."""
    _ends: dict[int, int] = field(default_factory=dict)
    _next: dict[tuple[int, int], count[int]] = field(default_factory=dict)

    def take(self, client: int, partition: int, records: int) -> list[int]:
        """Return the numbers of the next `records` records of the client in the partition.

        `records` is at least 1. The records are counted as sent. The numbers of one client in one
        partition increase. An assertion fails if a number reaches MAX_RECORDS."""
        counter = self._next.setdefault((client, partition), count())
        numbers = [
            (next(counter) * CLIENTS + client) * self.partitions + partition for _ in range(records)
        ]
        assert numbers[-1] < MAX_RECORDS, f"more than {MAX_RECORDS} records"
        while numbers[-1] >= len(self.acknowledged):
            self.acknowledged.extend([NOT_ACKNOWLEDGED] * GROWTH)
        self.sent += records
        return numbers

    def acknowledge(self, numbers: Sequence[int], base_offset: int, now_s: float) -> None:
        """Record that the batch of these records was acknowledged, the first one at `base_offset`.

        The records of a batch have consecutive offsets in one partition. Call this once per batch.
        `now_s` is on the monotonic clock, and must not decrease from call to call."""
        partition = numbers[0] % self.partitions
        self.confirmed_s[partition] = now_s
        end = base_offset + len(numbers)
        self._ends[partition] = max(end, self._ends.get(partition, 0))
        self.acknowledged_s.setdefault(partition, array("d")).append(now_s)
        self.delays.acknowledged(partition, base_offset, len(numbers), now_s)
        for offset, number in enumerate(numbers, base_offset):
            self.acknowledged[number] = offset
        self.confirmed += len(numbers)

    def ends(self) -> dict[int, int]:
        """Return the offset after the last acknowledged batch of each partition."""
        return dict(self._ends)

    def first_writes(self) -> bool:
        """Return True if every partition has acknowledged a write of any client."""
        return len(self.confirmed_s) == self.partitions

    def key(self, number: int) -> bytes:
        """Return the key of a record, its number."""
        return b"%0*d" % (self.key_bytes, number)

    def value(self, number: int) -> bytes:
        """Return the value of a record, which has `record_bytes` bytes."""
        return (b"%d " % number * (self.record_bytes // 2 + 1))[: self.record_bytes]

    def lines(self) -> Sequence[bytes]:
        """Return the values by record number, as a sequence that computes each value on access.

        The sequence is as long as `acknowledged`. It may be longer than `sent`, because it also has
        values for numbers that no client took. Slices are not supported."""
        return _Values(self)


class _Values(Sequence[bytes]):
    """The value of every record number, computed on access."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __len__(self) -> int:
        return len(self._ledger.acknowledged)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        assert isinstance(index, int)
        return self._ledger.value(index)
