"""Whether replicas of a partition hold the same, batch by batch: kafka-replica-verification's rule.

Pure. Compared is what each replica gave from the same offset on, up to its own high watermark; what
one of them lacks so far is lag, not a fault. Beyond Kafka's rule a batch has to match its own
checksum and be of the same leader epoch: the checksum in its header covers neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batch import BatchHeader, checksum_of

MAX_FAULTS = 1000
"""Kept of one partition; each is told when it is found."""


class Given(NamedTuple):
    """What a replica gave; `problem` when it gave nothing, and why."""

    high_watermark: int = -1
    records: memoryview = memoryview(b"")
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What two replicas say of the batch that ends at `offset`; or one, of its own."""

    kind: str
    offset: int
    replica: int
    value: int
    other_replica: int
    other_value: int

    @property
    def final(self) -> bool:
        """Nothing behind it can be compared."""
        return self.kind == OFFSET

    def __str__(self) -> str:
        """Stands behind the name of the partition; Kafka's words where Kafka looks."""
        return LINES[self.kind].format_map(asdict(self))


OFFSET, CHECKSUM, LEADER_EPOCH, DAMAGE = "offset", "checksum", "leader epoch", "damage"
LINES = {
    OFFSET: ": replica {replica}'s offset {value} doesn't match replica {other_replica}'s offset"
    " {other_value}",
    CHECKSUM: " has unmatched checksum at offset {offset}; replica {replica}'s checksum {value};"
    " replica {other_replica}'s checksum {other_value}",
    LEADER_EPOCH: " has unmatched leader epoch at offset {offset}; replica {replica}'s leader epoch"
    " {value}; replica {other_replica}'s leader epoch {other_value}",
    DAMAGE: " has a damaged batch at offset {offset}; replica {replica}'s checksum {value};"
    " of what it holds {other_value}",
}


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Of one partition: everything before `offset` is compared."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    offset: int
    end: int
    """Where it ended when the comparison began."""
    high_watermark: int = -1
    faults: list[Fault] = field(default_factory=list)
    """The first MAX_FAULTS."""
    diverged: bool = False
    """Nothing behind `offset` can be compared."""
    problems: dict[int, str] = field(default_factory=dict)
    """By replica, why it could not be compared the last time."""

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def done(self) -> bool:
        return self.offset >= self.end or self.diverged

    @property
    def equal(self) -> bool:
        return self.offset >= self.end and not self.faults

    @property
    def lag(self) -> int:
        return max(0, self.high_watermark - self.offset)

    def compare(self, given: Mapping[int, Given]) -> list[Fault]:
        """Take in what every replica gave from `offset` on; the faults that are new."""
        self.problems = {
            replica: each.problem or f"its high watermark is {each.high_watermark}"
            for replica, each in given.items()
            if each.problem or each.high_watermark < self.end
        }
        self.high_watermark = max(each.high_watermark for each in given.values())
        found: list[Fault] = []
        for batches in zip(*(_batches(each, given[each]) for each in sorted(given)), strict=False):
            found += differences(batches)
            if found and found[-1].final:
                self.diverged = True
                break
            self.offset = batches[0].header.next_offset
        self.faults += found[: MAX_FAULTS - len(self.faults)]
        return found


class Batch(NamedTuple):
    replica: int
    header: BatchHeader
    checksum: int
    """Of what is there; the header's is what was written."""


def _batches(replica: int, given: Given) -> Iterator[Batch]:
    for position, header in whole_batches(given.records):
        if header.last_offset >= given.high_watermark:
            return
        yield Batch(replica, header, checksum_of(given.records, position, header))


def differences(batches: Sequence[Batch]) -> Iterator[Fault]:
    """Of the batches that stand at the same place, from the first replica's."""
    offset = batches[0].header.last_offset
    for each in batches:
        if each.checksum != each.header.crc:
            yield _fault(DAMAGE, offset, each, each.header.crc, each, each.checksum)
    first, *others = batches
    for other in others:
        for kind, value_of in COMPARED.items():
            value, others_value = value_of(first.header), value_of(other.header)
            if value != others_value:
                yield _fault(kind, offset, first, value, other, others_value)
                if kind == OFFSET:  # these are not the same batch
                    return


COMPARED: dict[str, Callable[[BatchHeader], int]] = {
    OFFSET: lambda header: header.last_offset,
    CHECKSUM: lambda header: header.crc,
    LEADER_EPOCH: lambda header: header.leader_epoch,
}


def _fault(
    kind: str, offset: int, first: Batch, value: int, other: Batch, others_value: int
) -> Fault:
    return Fault(
        kind=kind,
        offset=offset,
        replica=first.replica,
        value=value,
        other_replica=other.replica,
        other_value=others_value,
    )
