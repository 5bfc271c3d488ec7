"""The reasons why a controller does not vote, for /readyz.

A controller that is meant to vote and does not is not ready, so that a rolling restart stops before
it takes the next voter. A controller is meant to vote if its id is that of a voter, or if it joins
by itself (controller.quorum.auto.join.enable). Any other controller is a standby, which waits for
`add-controller`. It is ready once its metadata is, because a rolling change must not wait for a
decision of the operator. Its answer has a note instead."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.ids import NO_NODE, uuid_to_text
from quorate.quorum.watch.node_view import NodeView

NO_VOTE = "this controller does not vote"
"""The beginning of these texts, which tools recognize."""


def voting_reasons(node: NodeView) -> Iterator[str]:
    """Yield the reason why a controller that is meant to vote does not."""
    replaced = node.raft.replaced_voter
    if replaced is not None:
        own, old = uuid_to_text(node.me.directory_id), uuid_to_text(replaced.directory_id)
        yield (
            f"{NO_VOTE}: its directory id is {own}, and that of voter {replaced.id} is {old}. "
            f"{_remedy(node, old)}"
        )
    elif _lacks_vote(node) and _joins(node):
        level = _kraft_version(node)
        yield (
            f"{NO_VOTE}: it joins by itself when it has caught up"
            if level
            else (
                f"{NO_VOTE}: it can join only at kraft.version 1. Run `quorate features upgrade "
                "--feature kraft.version=1`"
            )
        )


def voting_notes(node: NodeView) -> Iterator[str]:
    """Yield the note about a controller that is not meant to vote yet."""
    if _lacks_vote(node) and not _joins(node):
        yield f"{NO_VOTE}: it is a standby until `quorate metadata-quorum add-controller`"


def _lacks_vote(node: NodeView) -> bool:
    """Return True for a controller whose id is not that of a voter. Before the first contact with a
    leader, the voters are not known."""
    return (
        node.config.is_controller
        and node.raft.leader_id != NO_NODE
        and all(voter.voter_id != node.me.id for voter in node.voters)
    )


def _joins(node: NodeView) -> bool:
    return bool(node.config["controller.quorum.auto.join.enable"])


def _kraft_version(node: NodeView) -> int:
    return node.raft.voters_at(node.log.end_offset).kraft_version


def _remedy(node: NodeView, old: str) -> str:
    if not _kraft_version(node):
        return (
            "Restore that directory, or run `quorate features upgrade --feature kraft.version=1` "
            "and replace the voter (remove-controller and add-controller)"
        )
    if _joins(node):
        return "It takes the place of that voter by itself when it has caught up"
    return (
        "Restore that directory, or run `quorate metadata-quorum remove-controller "
        f"--controller-id {node.me.id} --controller-directory-id {old}` and then `add-controller`"
    )
