"""The voters of the metadata quorum that one node reaches, and what their number means.

The facts come from the node's own links, so they are known as soon as a connection closes, and
without any request. They name the last refusal or error of each missing link. A voter whose process
is paused keeps its link and counts as reachable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.quorum.seams import Address

if TYPE_CHECKING:  # a command that needs LOST must not import a node
    from quorate.quorum.watch.node_view import NodeView


@dataclass(frozen=True, slots=True)
class QuorumReach:
    """The number of voters, and those that the node does not reach, each as "2 at host:port:
    connection refused"."""

    voters: int
    unreachable: tuple[str, ...]

    @property
    def reachable(self) -> int:
        """Return the number of voters that the node reaches. A voter reaches itself."""
        return self.voters - len(self.unreachable)

    @property
    def majority(self) -> int:
        """Return the number of voters that an election or a commit needs."""
        return self.voters // 2 + 1

    def text(self) -> str:
        """Return the facts as a clause, such as "it reaches 1 of 3 voters (not 2 at a:1), ..."."""
        missing = f" (not {'; '.join(self.unreachable)})" if self.unreachable else ""
        return (
            f"it reaches {self.reachable} of {self.voters} voters{missing}, and the quorum needs "
            f"{self.majority}"
        )


def quorum_reach(node: NodeView) -> QuorumReach:
    """Return the reach of a node. It knows no voters before its first contact with a controller."""
    missing = []
    for voter in node.voters:
        if voter.voter_id != node.me.id and not node.is_connected(voter.voter_id):
            at = next((Address(each.host, each.port) for each in voter.endpoints), None)
            missing.append(f"{voter.voter_id} at {'?' if at is None else with_failure(node, at)}")
    return QuorumReach(len(node.voters), tuple(missing))


def with_failure(node: NodeView, address: Address) -> str:
    """Return the address, and the reason why the node has no link to it, if there is one."""
    failure = node.failure_at(address)
    return f"{address}: {failure}" if failure else str(address)


LOST = "the metadata quorum is lost"
"""The beginning of the reason, which tools recognize."""


def lost_quorum(node: NodeView) -> str | None:
    """Return the reason if the node reaches no majority of the voters, or None."""
    reach = quorum_reach(node)
    if reach.reachable >= reach.majority or not reach.voters:
        return None
    return f"{LOST}, as node {node.me.id} sees it: {reach.text()}"


def quorum_reasons(node: NodeView, *, knows_leader: bool) -> Iterator[str]:
    """Yield the reason why the quorum cannot serve this node, if there is one."""
    reach, lost = quorum_reach(node), lost_quorum(node)
    if reach.voters and not reach.reachable:
        yield f"no controller is reachable at {'; '.join(reach.unreachable)}"
    elif lost is not None:
        yield lost
    elif not knows_leader:
        yield f"no leader of the metadata quorum is known{_details(node, reach)}"


def _details(node: NodeView, reach: QuorumReach) -> str:
    if reach.voters:
        return f": {reach.text()}"
    servers: Sequence[tuple[str, int]] = node.config.bootstrap_servers
    at = "; ".join(with_failure(node, Address(*each)) for each in servers)
    return f": no controller has answered yet at {at}" if at else ""
