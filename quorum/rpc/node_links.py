"""The links that the nodes of a cluster, or peers that claim to be nodes, hold on one node.

At most `most` links are open. Beyond this number, an older link is closed, so that a new one is
always accepted. The first rule that finds a link decides:

1. The oldest link without a valid request. The only link of a known node is spared: a broker sends
   nothing to standby controllers for hours. Known nodes are the voters and the registered brokers.
2. A link of a node id that has more than LINKS_PER_NODE links. Any caller can claim a node id
   unless nodes prove it with certificates (`node_identity.py`).
3. A link of a node that is not known.
4. A link of the node id that has the most links.

Where a rule finds several links, it takes the one over which no frame has come for the longest
time. The new link itself is spared until the next one comes. Raft's followers and brokers connect
again after the end of a link.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection

from quorate.quorum.ids import NO_NODE
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.open_files import open_files
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.seams import Clock, Link

logger = logging.getLogger(__name__)

MAX_NODE_LINKS = 4096
NODE_LINKS_FILES = 16
"""The files that the process may open (RLIMIT_NOFILE), divided by this number, are a second bound.
The lower bound counts."""
LEAST_NODE_LINKS = 16
"""The links that are accepted however few files the process may open."""
LINKS_PER_NODE = 4
"""The links of one node id that count as those of one node. A node has two on each controller, and
for a moment two more after a restart."""


def most_node_links() -> int:
    """Return the number of links that this process accepts from other nodes."""
    return max(LEAST_NODE_LINKS, min(MAX_NODE_LINKS, open_files() // NODE_LINKS_FILES))


class AcceptedLink:
    """One accepted link. `channel` is None until the handshake of the nodes is complete."""

    __slots__ = ("channel", "link", "node_id")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.channel: Channel | None = None
        self.node_id = NO_NODE


class NodeLinks:
    """The accepted links of one node. The event loop owns it.

    Invariants: `_silent` is a subset of `_open`, and `_of_node` counts the links of `_open` whose
    handshake is complete, by node id. A link that was closed to make room is in none of them."""

    def __init__(
        self,
        clock: Clock,
        most: int,
        known: Callable[[], Collection[int]],
        displaced: Counter[str],
    ) -> None:
        """Create an empty set of at most `most` links. `known` returns the ids of the voters and of
        the registered brokers. `displaced` counts the links that are closed to make room, by
        `silent` and `useful`."""
        self._most = most
        self._displaced = displaced
        self._known = known
        self._lines = LogLimit(clock)
        self._open: dict[AcceptedLink, None] = {}
        self._silent: dict[AcceptedLink, None] = {}  # no valid request yet; the oldest first
        self._of_node: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, link: Link) -> AcceptedLink:
        """Count a new link, and close another one if there are too many."""
        accepted = AcceptedLink(link)
        self._open[accepted] = self._silent[accepted] = None
        if len(self._open) > self._most:
            self._close(self._least_useful(accepted))
        return accepted

    def greeted(self, accepted: AcceptedLink, channel: Channel) -> None:
        """Record that the handshake of the nodes is complete."""
        if accepted in self._open:
            accepted.channel, accepted.node_id = channel, channel.peer.node_id
            self._of_node[accepted.node_id] += 1

    def useful(self, accepted: AcceptedLink) -> None:
        """Record that the peer has sent a valid request."""
        self._silent.pop(accepted, None)

    def remove(self, accepted: AcceptedLink) -> None:
        """Remove a link that has ended. A second call does nothing."""
        if accepted not in self._open:
            return
        del self._open[accepted]
        self._silent.pop(accepted, None)
        if accepted.channel is not None:
            self._of_node[accepted.node_id] -= 1
            if not self._of_node[accepted.node_id]:
                del self._of_node[accepted.node_id]

    def _close(self, accepted: AcceptedLink) -> None:
        self._displaced["silent" if accepted in self._silent else "useful"] += 1
        self.remove(accepted)
        left_out = self._lines.passes("make room")
        if left_out is not None:
            logger.warning(
                "closing the link of %s to make room: more than %d links of nodes are open%s",
                accepted.link.peer if accepted.channel is None else accepted.channel.peer,
                self._most,
                left_out,
            )
        accepted.link.abort()

    def _least_useful(self, newcomer: AcceptedLink) -> AcceptedLink:
        """Return the link to close. It scans all links only if hardly any of them is silent."""
        known: Collection[int] | None = None
        for each in self._silent:
            if each is newcomer:
                continue
            if self._of_node[each.node_id] != 1:
                return each
            known = self._known() if known is None else known
            if each.node_id not in known:
                return each
        known = self._known() if known is None else known

        def rank(each: AcceptedLink) -> tuple[bool, bool, int, int]:
            links = self._of_node[each.node_id]
            heard_ms = 0 if each.channel is None else each.channel.heard_ms
            return links <= LINKS_PER_NODE, each.node_id in known, -links, heard_ms

        return min((each for each in self._open if each is not newcomer), key=rank)
