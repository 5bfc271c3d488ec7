"""The assignments and the committed offsets of one group, as its members know them.

Rules:

- All members of a generation get their parts of one assignment, which the leader of that generation
  has sent. Two leaders may send assignments for the same generation, because a coordinator that
  dies may not have recorded it. Then only one of the two may take effect.
- No partition has two owners in one generation.
- A new owner finds the offset that was committed last. If it finds an older one, a commit was lost.
  The exception is a commit without a known outcome: it may take effect late, after later commits of
  the same generation. No commit of an older generation takes effect after the new owner has
  fetched.

A coordinator that was deposed and does not know this yet may answer with outdated offsets. An
answer is therefore compared only if no member knows a later generation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tests.sim.checks.committed_log import Violation

NOTHING = -1
Assignment = Mapping[str, frozenset[int]]
"""The partitions of each owner. The owner is a member id, or the instance id of a static member."""


@dataclass(slots=True)
class Committed:
    """The committed offset of one partition. `generation` and `offset` are those of the last known
    commit. `unknown` has the generation of each commit without a known outcome, by offset."""

    generation: int = 0
    offset: int = NOTHING
    unknown: dict[int, int] = field(default_factory=dict)
    may_precede: frozenset[int] = frozenset()
    """The commits of older generations that may have taken effect before the commit that the last
    new owner found."""


class GroupBook:
    """Records the requests and answers of the members of one group. Each method raises Violation if
    a rule is broken."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.generation = 0
        """The latest generation in which a member got its assignment."""
        self.last_offset = 0
        """The largest offset that was ever committed or attempted. Each attempt takes the next."""
        self._sent: dict[int, list[Assignment]] = {}
        """The assignments that may be in effect, by generation."""
        self._owners: dict[tuple[int, int], str] = {}
        self._committed: dict[int, Committed] = {}

    def offset(self, partition: int) -> int:
        """Return the offset that is known to be committed, or NOTHING."""
        return self._of(partition).offset

    def _of(self, partition: int) -> Committed:
        return self._committed.setdefault(partition, Committed())

    # -- assignments -----------------------------------------------------------------------------

    def leader_sends(self, generation: int, assignment: Assignment) -> None:
        """Record the assignment that a leader is about to send."""
        self._sent.setdefault(generation, []).append(assignment)

    def synced(self, generation: int, owner: str, partitions: Collection[int]) -> None:
        """Check the assignment that an owner got in a generation."""
        got = frozenset(partitions)
        possible = self._sent.get(generation, [])
        fitting = [each for each in possible if each.get(owner, frozenset()) == got]
        if not fitting:
            raise Violation(
                f"group {self.group}, generation {generation}: {owner} owns {sorted(got)}, and the "
                f"assignments are {[{o: sorted(p) for o, p in e.items()} for e in possible]}"
            )
        self._sent[generation] = fitting
        for partition in sorted(got):
            other = self._owners.setdefault((generation, partition), owner)
            if other != owner:
                raise Violation(
                    f"group {self.group}, generation {generation}: partition {partition} has two "
                    f"owners, {other} and {owner}"
                )
        self.generation = max(self.generation, generation)

    # -- offsets ---------------------------------------------------------------------------------

    def next_commit(self, generation: int, partition: int) -> int:
        """Record a commit that is about to be sent, and return its offset."""
        self.last_offset += 1
        self._of(partition).unknown[self.last_offset] = generation
        return self.last_offset

    def commit_refused(self, partition: int, offset: int) -> None:
        """Record that a commit had no effect, and will have none."""
        self._of(partition).unknown.pop(offset, None)

    def commit_acknowledged(self, generation: int, partition: int, offset: int) -> None:
        """Record an acknowledged commit. A later owner may have fetched meanwhile."""
        known = self._of(partition)
        known.unknown.pop(offset, None)
        if generation >= known.generation:
            known.generation, known.offset = generation, offset
        elif offset not in known.may_precede:
            raise Violation(
                f"group {self.group}, partition {partition}: the commit of {offset} in generation "
                f"{generation} was acknowledged, and generation {known.generation} did not find it"
            )

    def fetched(self, generation: int, partition: int, offset: int) -> bool:
        """Check the offset that an owner of this generation found. Return False if the answer may
        be outdated."""
        if self.generation > generation:
            return False
        known = self._of(partition)
        if offset != known.offset and offset not in known.unknown:
            raise Violation(
                f"group {self.group}, partition {partition}: generation {generation} finds offset "
                f"{offset}; {known.offset} was committed last, and unknown are "
                f"{sorted(known.unknown)}"
            )
        if generation > known.generation:
            late = offset in known.unknown
            known.may_precede = frozenset(known.unknown if late else ())
        known.generation, known.offset = generation, offset
        known.unknown = {each: g for each, g in known.unknown.items() if g >= generation}
        return True
