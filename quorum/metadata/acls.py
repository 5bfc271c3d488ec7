"""The ACLs of the image, by id and by the resource that they name.

An `AclSet` is a persistent value, like the image: a change returns another set, which shares all
unchanged parts. A decision therefore reads the ACLs of exactly one image, and no index has to
follow the log.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.protocol.acl_codes import PatternType


class Acl(NamedTuple):
    """One ACL. The numbers are the codes of `protocol/acl_codes.py`. `host` is an IP address or
    `*`. `principal` is the text of a principal, such as `User:alice`, or `User:*`."""

    resource_type: int
    pattern_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission_type: int


class Pattern(NamedTuple):
    """The resources that an ACL is about: one name, all names (`*`), or all names with a prefix."""

    resource_type: int
    pattern_type: int
    resource_name: str


def pattern_of(acl: Acl) -> Pattern:
    """Return the resources that the ACL is about."""
    return Pattern(acl.resource_type, acl.pattern_type, acl.resource_name)


ByPrincipal: TypeAlias = "PersistentMap[str, tuple[Acl, ...]]"
NO_ACLS: ByPrincipal = PersistentMap()
NO_LENGTHS: PersistentMap[int, int] = PersistentMap()


@dataclass(frozen=True, slots=True)
class AclSet:
    """All ACLs of a cluster.

    Invariants: `by_pattern` holds the ACLs of `by_id`, by pattern and then by principal, sorted.
    `prefix_lengths` holds the number of prefixes with each length, by resource type. No value of
    the three maps is empty."""

    by_id: PersistentMap[Uuid, Acl] = PersistentMap()
    by_pattern: PersistentMap[Pattern, ByPrincipal] = PersistentMap()
    prefix_lengths: PersistentMap[int, PersistentMap[int, int]] = PersistentMap()

    def __len__(self) -> int:
        """Return the number of ACLs."""
        return len(self.by_id)

    def of(self, pattern: Pattern) -> ByPrincipal:
        """Return the ACLs of one pattern by principal."""
        return self.by_pattern.get(pattern, NO_ACLS)

    def contains(self, acl: Acl) -> bool:
        """Return True if the set has this ACL, with any id."""
        return _place(self.of(pattern_of(acl)).get(acl.principal, ()), acl)[1]

    def with_acl(self, acl_id: Uuid, acl: Acl) -> AclSet:
        """Return the set with one more ACL. Raise ReplayError if the set already has the id or the
        ACL."""
        if acl_id in self.by_id:
            raise ReplayError("there is already an ACL with this id")
        pattern = pattern_of(acl)
        now = self.of(pattern)
        same = now.get(acl.principal, ())
        place, exists = _place(same, acl)
        if exists:
            raise ReplayError("the same ACL exists under another id")
        more = (*same[:place], acl, *same[place:])
        return AclSet(
            self.by_id.insert(acl_id, acl),
            self.by_pattern.insert(pattern, now.insert(acl.principal, more)),
            self.prefix_lengths if now else self._lengths_with(pattern, 1),
        )

    def without(self, acl_id: Uuid) -> AclSet:
        """Return the set without the ACL. Raise ReplayError if there is no ACL with this id."""
        acl = self.by_id.get(acl_id)
        if acl is None:
            raise ReplayError("there is no ACL with this id")
        pattern = pattern_of(acl)
        now = self.by_pattern[pattern]
        same = now[acl.principal]
        place, _ = _place(same, acl)
        rest = same[:place] + same[place + 1 :]
        left = now.insert(acl.principal, rest) if rest else now.remove(acl.principal)
        by_id = self.by_id.remove(acl_id)
        if left:
            return replace(self, by_id=by_id, by_pattern=self.by_pattern.insert(pattern, left))
        return AclSet(by_id, self.by_pattern.remove(pattern), self._lengths_with(pattern, -1))

    def _lengths_with(
        self, pattern: Pattern, change: int
    ) -> PersistentMap[int, PersistentMap[int, int]]:
        """Return the lengths of prefixes after a prefix was added (1) or removed (-1)."""
        if pattern.pattern_type != PatternType.PREFIXED:
            return self.prefix_lengths
        kind, length = pattern.resource_type, len(pattern.resource_name)
        lengths = self.prefix_lengths.get(kind, NO_LENGTHS)
        count = lengths.get(length, 0) + change
        lengths = lengths.insert(length, count) if count else lengths.remove(length)
        if lengths:
            return self.prefix_lengths.insert(kind, lengths)
        return self.prefix_lengths.remove(kind)


def _place(acls: tuple[Acl, ...], acl: Acl) -> tuple[int, bool]:
    """Return the position of the ACL in sorted `acls`, and True if it is there. A batch may add
    10,000 ACLs of one principal, and a comparison with each of the others would take seconds."""
    place = bisect_left(acls, acl)
    return place, place < len(acls) and acls[place] == acl


EMPTY = AclSet()
"""The set without ACLs."""
