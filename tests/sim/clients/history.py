"""The requests of the clients with their answers, and the checks of them after the healing.

A record that was acknowledged with acks=all is in its partition exactly once. A record of an
idempotent producer without a known outcome is in its partition at most once. The records of one
producer in one partition have the order in which they were sent. Consumers see only committed
records. Their reads are therefore compared with the records that the brokers hold below their high
watermarks (`invariants.CommittedLog`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quorate.quorum.seams import Buffer
from tests.sim.checks.admin_history import AdminHistory
from tests.sim.checks.invariants import Violation

Place = tuple[str, int]


FOREIGN = b"evil:"
"""The prefix of the values of records that no producer of the good workload has written."""


def value_of(producer: str, number: int) -> bytes:
    return f"{producer}:{number}".encode()


def parse_value(value: Buffer) -> tuple[str, int] | None:
    """Return the producer's name and the number of a record, None if no producer wrote it."""
    name, _, number = bytes(value).partition(b":")
    return (name.decode(), int(number)) if name.isascii() and number.isdigit() else None


@dataclass(slots=True)
class Promises:
    """The records of one producer in one partition, by number. An offset of -1 in `acknowledged`
    means that the record is in the log at an unknown offset. The records in `unanswered` are not
    sent again. They may be stored after later ones, which went over another connection."""

    sent: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)
    unanswered: set[int] = field(default_factory=set)

    def overtook(self, number: int) -> bool:
        """Return True if every acknowledged record is a later one.

        A broker accepts any sequence number of a producer of which it has no state, as in Kafka. It
        may refuse the first of several batches in flight because the ISR is too small. If the ISR
        grows before the next batch, the first one can never be appended (seed 20050)."""
        return bool(self.acknowledged) and number < min(self.acknowledged)


@dataclass(slots=True)
class History:
    promises: dict[tuple[str, Place], Promises] = field(default_factory=dict)
    admin: AdminHistory = field(default_factory=AdminHistory)
    consumed: int = 0
    admin_done: int = 0
    hostile_batches: bool = False
    """True if a hostile client writes, too. A broker checks records only up to a bound, so it
    stores some of this client's batches that no client can decode. A good batch that cannot be
    decoded counts as lost."""

    def of(self, producer: str, place: Place) -> Promises:
        return self.promises.setdefault((producer, place), Promises())

    @property
    def acknowledged(self) -> int:
        return sum(len(each.acknowledged) for each in self.promises.values())

    def acknowledged_in(self, place: Place) -> int:
        """Return the number of acknowledged records of a partition."""
        known = (each for (_, where), each in self.promises.items() if where == place)
        return sum(len(each.acknowledged) for each in known)

    def end_of(self, place: Place) -> int:
        """Return the offset after the last acknowledged record of a partition, or 0."""
        known = (each for (_, where), each in self.promises.items() if where == place)
        return 1 + max(
            (offset for each in known for offset in each.acknowledged.values()), default=-1
        )

    def check(self, place: Place, records: Iterable[tuple[int, Buffer]]) -> None:
        """Check `records`, which are all records of the partition, as a consumer reads them. Raise
        Violation if a promise is broken."""
        producers = {producer for producer, where in self.promises if where == place}
        found: dict[str, dict[int, int]] = {}
        for offset, value in records:
            parsed = parse_value(value)
            if parsed is None or parsed[0] not in producers:
                continue  # a hostile client wrote it
            producer, number = parsed
            numbers = found.setdefault(producer, {})
            unanswered = self.promises[producer, place].unanswered
            if number in numbers:
                raise Violation(
                    f"{place}: {producer}:{number} stands twice, at {numbers[number]} and {offset}"
                )
            if numbers and number < next(reversed(numbers)) and number not in unanswered:
                raise Violation(f"{place}: {producer}:{number} at {offset} is out of order")
            numbers[number] = offset
        for (producer, where), promises in self.promises.items():
            if where == place:
                self._check_promises(producer, place, promises, found.get(producer, {}))

    def _check_promises(
        self, producer: str, place: Place, promises: Promises, found: dict[int, int]
    ) -> None:
        for number, offset in promises.acknowledged.items():
            if number not in found:
                raise Violation(f"{place}: {producer}:{number} acknowledged at {offset} is lost")
            if offset >= 0 and found[number] != offset:
                raise Violation(
                    f"{place}: {producer}:{number} acknowledged at {offset}, is at {found[number]}"
                )
        if found and max(found) >= promises.sent:
            raise Violation(f"{place}: {producer}:{max(found)} was never sent")
