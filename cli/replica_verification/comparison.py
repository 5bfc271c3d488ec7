"""A comparison of the replicas of a partition, by the rule of kafka-replica-verification.

The module is pure. It compares, batch by batch, what each replica returned from the same offset on,
up to the replica's own high watermark. Missing records at the end of a replica are lag, not a
fault. Beyond Kafka's rule, each batch must match its own checksum, and the leader epochs must be
equal. The checksum in the header does not cover the leader epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batches.batch import BatchHeader, checksum_of

MAX_DIFFERENCES = 1000
"""The most faults kept for one partition. Every fault is reported when it is found."""


class ReplicaResponse(NamedTuple):
    """A replica's response. If it has no records because of an error, `problem` is the reason."""

    high_watermark: int = -1
    records: memoryview = memoryview(b"")
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between two replicas in the batch that ends at `offset`.

    If a batch does not match its own checksum, both replicas are the same one."""

    kind: str
    offset: int
    replica: int
    value: int
    other_replica: int
    other_value: int

    @property
    def final(self) -> bool:
        """Return True if nothing after this fault can be compared."""
        return self.kind == OFFSET

    def __str__(self) -> str:
        """Return the text that follows the partition's name.

        Kafka's words are used for Kafka's checks."""
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
    """The comparison of one partition. Invariant: everything before `offset` is compared."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    offset: int
    end: int
    """The latest offset of the partition when the comparison began."""
    high_watermark: int = -1
    faults: list[Difference] = field(default_factory=list)
    """The first MAX_DIFFERENCES differences."""
    diverged: bool = False
    """True if nothing after `offset` can be compared."""
    problems: dict[int, str] = field(default_factory=dict)
    """The reason why each of these replicas could not be compared in the last round."""

    @property
    def key(self) -> tuple[str, int]:
        """Return the topic and the partition."""
        return self.topic, self.partition

    @property
    def name(self) -> str:
        """Return Kafka's name of the partition."""
        return f"{self.topic}-{self.partition}"

    @property
    def done(self) -> bool:
        """Return True if the comparison has reached its end or cannot continue."""
        return self.offset >= self.end or self.diverged

    @property
    def equal(self) -> bool:
        """Return True if the comparison has reached its end without a fault."""
        return self.offset >= self.end and not self.faults

    @property
    def lag(self) -> int:
        """Return the number of records below the highest high watermark that are not compared
        yet."""
        return max(0, self.high_watermark - self.offset)

    def compare(self, given: Mapping[int, ReplicaResponse]) -> list[Difference]:
        """Compare the responses of all replicas from `offset` on, and return the new faults.

        Advance `offset` over the batches that all replicas returned below their high watermarks.
        If one replica returned none, nothing is compared, and `problems` has the reason."""
        self.problems = {
            replica: each.problem or f"its high watermark is {each.high_watermark}"
            for replica, each in given.items()
            if each.problem or each.high_watermark < self.end
        }
        self.high_watermark = max(each.high_watermark for each in given.values())
        found: list[Difference] = []
        for batches in zip(*(_batches(each, given[each]) for each in sorted(given)), strict=False):
            found += differences(batches)
            if found and found[-1].final:
                self.diverged = True
                break
            self.offset = batches[0].header.next_offset
        self.faults += found[: MAX_DIFFERENCES - len(self.faults)]
        return found


class Batch(NamedTuple):
    """The header of a replica's batch and the checksum computed from its content."""

    replica: int
    header: BatchHeader
    checksum: int
    """Computed from the content. The header's checksum was computed by the writer."""


def _batches(replica: int, given: ReplicaResponse) -> Iterator[Batch]:
    for position, header in whole_batches(given.records):
        if header.last_offset >= given.high_watermark:
            return
        yield Batch(replica, header, checksum_of(given.records, position, header))


def differences(batches: Sequence[Batch]) -> Iterator[Difference]:
    """Yield the faults of batches at the same position, compared with the first replica's batch."""
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
                if kind == OFFSET:  # the batches are different ones
                    return


COMPARED: dict[str, Callable[[BatchHeader], int]] = {
    OFFSET: lambda header: header.last_offset,
    CHECKSUM: lambda header: header.crc,
    LEADER_EPOCH: lambda header: header.leader_epoch,
}
"""The values that must be equal in all replicas, by the kind of the difference."""


def _fault(
    kind: str, offset: int, first: Batch, value: int, other: Batch, others_value: int
) -> Difference:
    return Difference(
        kind=kind,
        offset=offset,
        replica=first.replica,
        value=value,
        other_replica=other.replica,
        other_value=others_value,
    )
