"""The reading of all records at the end of a run, within a time limit.

A partition that cannot be read is part of the result, with the reason. The others are compared."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from quorate.cli.chaos.workload.comparison import Comparison, Verdict
from quorate.cli.chaos.workload.ledger import CLIENTS, Ledger
from quorate.cli.chaos.workload.reader import number_of
from quorate.cli.client.consumer import EARLIEST, LATEST, Consumed
from quorate.cli.client.errors import NotReachable, Refused

READ_BACK_S = 120.0
"""The time, in s, for the reading of all partitions."""
NO_PROGRESS_S = 30.0
"""The time, in s, without any record after which the reading ends."""


class Source(Protocol):
    """A consumer of one topic, such as `cli.client.consumer.Consumer`."""

    numbers: list[int]

    @property
    def positions(self) -> dict[int, int]:
        """Return the next offset to read of each partition."""

    def seek_to(self, positions: Mapping[int, int]) -> None:
        """Set the positions of some partitions."""

    def offset_of(self, partition: int, timestamp: int) -> int:
        """Return the offset for EARLIEST or LATEST."""

    def poll(self) -> Iterator[Consumed]:
        """Yield records, or none if there are none yet."""


@dataclass(slots=True)
class ReadBack:
    """All records that could be read, compared with the ledger."""

    compared: Verdict
    final: dict[int, array[int]] = field(default_factory=dict)
    """The record numbers by offset of each partition."""
    unread: dict[int, str] = field(default_factory=dict)
    """The partitions that were not read to their end, with the reasons."""


def read_back(
    ledger: Ledger, source: Source, now_s: Callable[[], float] = time.monotonic
) -> ReadBack:
    """Read all partitions up to the ends that they have when the call begins. Raise nothing.

    The call takes READ_BACK_S, the time of one `offset_of`, and that of one `poll` at most."""
    deadline_s = now_s() + READ_BACK_S
    comparison = Comparison(ledger.lines(), ledger.acknowledged, ledger.partitions, clients=CLIENTS)
    final: dict[int, array[int]] = {each: array("q") for each in range(ledger.partitions)}
    unread: dict[int, str] = {}
    ends = ends_of(source, ledger.partitions, unread, deadline_s, now_s)
    source.numbers = sorted(ends)

    def behind() -> list[int]:
        return [each for each, end in ends.items() if source.positions[each] < end]

    progress_s = now_s()
    while waiting := behind():
        late = "not read in time"
        if now_s() > min(deadline_s, progress_s + NO_PROGRESS_S):
            unread |= dict.fromkeys(waiting, late)
            break
        try:
            for each in source.poll():
                progress_s = now_s()
                key, value = bytes(each.record.key or b""), bytes(each.record.value or b"")
                comparison.read(each.partition, each.record.offset, key, value)
                final[each.partition].append(number_of(key))
        except (Refused, NotReachable) as error:
            unread |= dict.fromkeys(waiting, error.message)
            break
    first_unread = {each: len(final[each]) for each in unread}
    return ReadBack(comparison.verdict(first_unread), final, unread)


def ends_of(
    source: Source,
    partitions: int,
    unread: dict[int, str],
    deadline_s: float,
    now_s: Callable[[], float],
) -> dict[int, int]:
    """Return the end offset of each partition, and set the source's position to its start.

    Partitions without an answer are added to `unread`. After the first that is unreachable, the
    others are not asked any more."""
    ends = {}
    gone = ""
    for partition in range(partitions):
        if gone or now_s() > deadline_s:
            unread[partition] = gone or "its end was not asked for in time"
            continue
        try:
            end = source.offset_of(partition, LATEST)
            source.seek_to({partition: source.offset_of(partition, EARLIEST)})
        except Refused as error:
            unread[partition] = error.message
        except NotReachable as error:
            unread[partition] = gone = error.message
        else:
            ends[partition] = end
    return ends
