"""The memory that the members of all groups of one broker hold, and its bounds.

A member holds the metadata of its protocols, its ids and its assignment, also after its connection
has closed, until its session expires. The budgets of connections (`rpc/budget.py`) count none of
it. Therefore:

- The members of one group hold at most MAX_GROUP_BYTES. A join beyond it is refused, and so is an
  assignment. The record of a group must fit into one batch of __consumer_offsets, which by default
  takes an eighth of this.
- If the members of all groups hold more than MAX_GROUPS_BYTES, the groups that hold the most lose
  all of their members (`relief.py`). A group of ordinary size is the last.

Invariant: `used_bytes` is the sum of `Group.held_bytes` of the groups of all shards that are open
or being closed.
"""

from __future__ import annotations

from collections.abc import Callable

MIB = 1 << 20
MAX_GROUP_BYTES = 8 * MIB
MAX_GROUPS_BYTES = 128 * MIB
MEMBER_BYTES = 1024
"""The memory counted for a member in addition to its texts and bytes."""


class MemberMemory:
    """Counts the bytes of all groups of a broker. The event loop owns it.

    `evicted` is the number of groups that lost their members because of the bound, for metrics."""

    def __init__(self, limit_bytes: int = MAX_GROUPS_BYTES) -> None:
        """Create the count of a broker without groups."""
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.evicted = 0
        self.on_full: Callable[[], None] = lambda: None
        """Called when `used_bytes` exceeds the limit. It must not remove members immediately,
        because a request changes the group at this moment."""

    def add(self, held_bytes: int) -> None:
        """Count `held_bytes` more, or fewer if it is negative."""
        self.used_bytes += held_bytes
        if held_bytes > 0 and self.used_bytes > self.limit_bytes:
            self.on_full()
