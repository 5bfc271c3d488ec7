"""The check that no record was lost, duplicated or reordered.

The module is pure: it compares the sent and acknowledged lines with the records that were read.

- Line n goes to partition n modulo the number of partitions, with n as its key. Thus each record
  names the line that it must contain.
- If several clients write, line n belongs to client n // partitions modulo their number. The order
  is checked for each client.
- An acknowledged line must be present at the acknowledged offset. Any other line may be present
  once or be absent."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

NOT_ACKNOWLEDGED = -1
"""The value in place of the offset of a line that was not acknowledged."""
MAX_EXAMPLES_KEPT = 10
NOTHING: Mapping[int, int] = {}


@dataclass(slots=True)
class Violations:
    """The number of violations of one kind, and the first few as text."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Count one violation, and keep its text if few are kept so far."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES_KEPT:
            self.examples.append(example)


class Comparison:
    """The comparison of all lines with the records read.

    Every partition's records must be passed to `read` in the order of their offsets."""

    def __init__(
        self, lines: Sequence[bytes], acknowledged: array[int], partitions: int, clients: int = 1
    ) -> None:
        """Start a comparison of `lines` with the records of a topic with `partitions` partitions.

        `acknowledged` has the same length. `acknowledged[n]` is the offset of line n, or
        NOT_ACKNOWLEDGED. A line with NOT_ACKNOWLEDGED need not have been sent."""
        assert len(lines) == len(acknowledged)
        self._lines = lines
        self._acknowledged = acknowledged
        self._partitions = partitions
        self._seen = bytearray(len(lines))
        self._last = [-1] * partitions * clients
        self.records = 0
        self.changed = Violations()
        self.doubled = Violations()
        self.reordered = Violations()
        self.moved = Violations()

    def read(self, partition: int, offset: int, key: bytes, value: bytes) -> None:
        """Check one record that was read."""
        self.records += 1
        where = f"partition {partition} offset {offset}"
        line = int(key) if key.isdigit() else -1
        if not 0 <= line < len(self._lines) or line % self._partitions != partition:
            self.changed.add(f"{where}: key {key!r} was never sent there")
            return
        if value != self._lines[line]:
            self.changed.add(f"{where}: line {line} is {value!r}, was {self._lines[line]!r}")
        lane = line % len(self._last)
        if self._seen[line]:
            self.doubled.add(f"{where}: line {line} occurs again")
        elif line < self._last[lane]:
            self.reordered.add(f"{where}: line {line} comes after line {self._last[lane]}")
        self._seen[line] = 1
        self._last[lane] = max(line, self._last[lane])
        acknowledged_at = self._acknowledged[line]
        if acknowledged_at not in (NOT_ACKNOWLEDGED, offset):
            self.moved.add(f"{where}: line {line} was acknowledged at offset {acknowledged_at}")

    def verdict(self, unread: Mapping[int, int] = NOTHING) -> Verdict:
        """Return the result after all records were read.

        `unread` maps each partition that was not read to its end to the first offset that was not
        read. An acknowledged line from there on is neither lost nor found, but unverified."""
        lost, lost_in = Violations(), set[int]()
        acknowledged = unverified = 0
        for line, offset in enumerate(self._acknowledged):
            if offset == NOT_ACKNOWLEDGED:
                continue
            acknowledged += 1
            first_unread = unread.get(line % self._partitions)
            if first_unread is not None and offset >= first_unread:
                unverified += 1
            elif not self._seen[line]:
                lost.add(f"line {line}: acknowledged at offset {offset}, not found")
                lost_in.add(line % self._partitions)
        return Verdict(
            sent=len(self._lines),
            acknowledged=acknowledged,
            read=self.records,
            lost=lost,
            doubled=self.doubled,
            reordered=self.reordered,
            changed=self.changed,
            moved=self.moved,
            unverified=unverified,
            lost_in=frozenset(lost_in),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a comparison: the numbers of lines and records, and the violations by kind.

    `sent` is the number of lines that the comparison was given, even if some were never sent. A
    lost line occurs at no offset, and a moved one at another offset than the acknowledged one.
    `unverified` counts the acknowledged lines in partitions that could not be read."""

    sent: int
    acknowledged: int
    read: int
    lost: Violations
    doubled: Violations
    reordered: Violations
    changed: Violations
    moved: Violations
    unverified: int = 0
    lost_in: frozenset[int] = frozenset()
    """The partitions that lost acknowledged lines."""

    @property
    def good(self) -> bool:
        """Return True if there are no violations and at least one line was acknowledged.

        Every acknowledged line must have been verified."""
        return (
            self.acknowledged > 0
            and not self.unverified
            and not any(kind.count for _, kind in self.violations())
        )

    def violations(self) -> Iterator[tuple[str, Violations]]:
        """Yield the violations of each kind with the name of the kind."""
        yield "lost", self.lost
        yield "duplicated", self.doubled
        yield "out of order", self.reordered
        yield "changed", self.changed
        yield "at another offset", self.moved

    def lines(self) -> Iterator[str]:
        """Yield the lines of a report."""
        yield f"{self.sent:,} lines sent, {self.acknowledged:,} acknowledged, {self.read:,} read"
        yield ", ".join(f"{kind.count} {name}" for name, kind in self.violations())
        for _, kind in self.violations():
            yield from kind.examples
