"""The time from the acknowledgement of a batch until the consumer has read it. Pure.

A record is available to consumers only when they have read it. A consumer that reads nothing has
no failed request, so the delay is measured from the acknowledgements of the producers."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.cli.chaos.timeline.outage import Gap
from quorate.cli.chaos.workload.latencies import Samples

DELAY_S = 0.5
"""The delay, in s, from which on the consumer counts as waiting. Shorter ones are normal: a Fetch
waits for records, and a busy machine delays it."""


class Unread(NamedTuple):
    """An acknowledged batch that the consumer has not read to its end."""

    end_offset: int
    records: int
    acknowledged_s: float


@dataclass(slots=True)
class ReadDelays:
    """The acknowledged batches that wait for the consumer. Times are in s, and never decrease.

    Bound: one entry per batch in flight between producers and consumer."""

    gaps: list[Gap] = field(default_factory=list)
    """The delays longer than DELAY_S, without those inside of the previous one of the partition."""
    latencies: Samples = field(default_factory=Samples)
    """The delays of all batches that were read."""
    read_s: dict[int, array[float]] = field(default_factory=dict)
    """The times at which the consumer advanced, by partition."""
    _waiting: dict[int, deque[Unread]] = field(default_factory=dict)
    _position: dict[int, int] = field(default_factory=dict)
    _last: dict[int, Gap] = field(default_factory=dict)

    def acknowledged(self, partition: int, base_offset: int, records: int, now_s: float) -> None:
        """Record an acknowledged batch."""
        end_offset = base_offset + records
        if end_offset > self._position.get(partition, 0):
            waiting = self._waiting.setdefault(partition, deque())
            waiting.append(Unread(end_offset, records, now_s))

    def read(self, partition: int, position: int, now_s: float) -> None:
        """Record that the consumer has read the partition up to `position`, the next offset."""
        if position <= self._position.get(partition, 0):
            return
        self._position[partition] = position
        self.read_s.setdefault(partition, array("d")).append(now_s)
        waiting = self._waiting.get(partition, deque())
        while waiting and waiting[0].end_offset <= position:
            batch = waiting.popleft()
            self._waited(partition, batch, now_s)
            self.latencies.add(batch.acknowledged_s, now_s)

    def unread(self) -> int:
        """Return the number of acknowledged records that the consumer has not read."""
        return sum(
            each.records
            for partition, waiting in self._waiting.items()
            for each in waiting
            if each.end_offset > self._position.get(partition, 0)
        )

    def close(self, now_s: float) -> None:
        """Count the batches that are still unread as waiting until `now_s`."""
        for partition, waiting in self._waiting.items():
            for each in waiting:
                self._waited(partition, each, now_s)

    def clear(self) -> None:
        """Remove the delays so far, such as those of the first writes."""
        self.gaps.clear()
        self.latencies.clear()
        self._last.clear()

    def _waited(self, partition: int, batch: Unread, now_s: float) -> None:
        gap, last = Gap(partition, batch.acknowledged_s, now_s), self._last.get(partition)
        inside = last is not None and last.start_s <= gap.start_s and gap.end_s <= last.end_s
        if now_s - batch.acknowledged_s > DELAY_S and not inside:
            self._last[partition] = gap
            self.gaps.append(gap)
