"""The checks of epochs and leaders that other nodes claim.

Raft does not tolerate Byzantine nodes. A node that lies can stall this one: it can raise the epoch
within MAX_EPOCH_JUMP, name another voter as the leader of an epoch, or, as the elected leader,
declare records committed that are not. These checks keep such a node from stopping this one. A
refused claim changes nothing here. The overview of the package lists all refused claims.
"""

from __future__ import annotations

from quorate.quorum.ids import NO_NODE
from quorate.quorum.node_message_bounds import INT32_MAX
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.states import Follower

MAX_EPOCH = INT32_MAX
"""The last epoch that a record can have. No election can follow it."""
MAX_EPOCH_JUMP = 1 << 20
"""The maximum distance between this node's epoch and one that it adopts.

An election raises the epoch by one. A node with records cannot have missed a million elections, so
the message is false, and it would use up the epochs that are left. A node without records adopts
any epoch, because it may join an old quorum."""


def is_plausible(core: Core, epoch: int) -> bool:
    """Return True if `epoch` is at most MAX_EPOCH_JUMP above this node's, or if this node's log is
    empty."""
    return epoch - core.epoch <= MAX_EPOCH_JUMP or core.log.end_offset == 0


def contradicts_known_leader(core: Core, epoch: int, leader_id: int) -> bool:
    """Return True if this node knows another leader of `epoch` than `leader_id`. A claim that this
    node leads is no contradiction: another rule ignores it (`learn_leader`). Neither is one that
    `replaces_unproved_leader`."""
    if epoch != core.epoch or NO_NODE in (leader_id, core.leader_id):
        return False
    if replaces_unproved_leader(core, epoch, leader_id):
        return False
    return leader_id not in (core.leader_id, core.me.id)


def replaces_unproved_leader(core: Core, epoch: int, leader_id: int) -> bool:
    """Return True if this node follows a node in `epoch` that has never responded to it as the
    leader and is no voter, while `leader_id` is another node and a voter. A node that knows no
    voter yet believes that of every other node.

    One false claim that a node leads which no voter elected would otherwise keep this node away
    from the leader until the next epoch. Nothing was fetched from the unproved leader, so nothing
    rests on it. A voter that this node does not know yet may lead, so such claims are believed."""
    state, voters = core.state, core.voters.ids
    return (
        isinstance(state, Follower)
        and epoch == core.epoch
        and not state.has_fetched
        and core.leader_id not in voters
        and (leader_id in voters or not voters)
        and leader_id not in (core.leader_id, core.me.id)
    )


def is_credible(core: Core, epoch: int, leader_id: int, replica_id: int) -> bool:
    """Return True if the claim of `replica_id` that `leader_id` leads `epoch` may be true. Report a
    claim that is refused."""
    if epoch == core.epoch and leader_id == core.leader_id:
        return True  # nothing new, as in almost every response
    if not is_plausible(core, epoch):
        core.refuse_claim(
            replica_id,
            f"claims epoch {epoch}, but this node is in epoch {core.epoch}. If the claim is true, "
            "format the metadata directory of this node and let it catch up. Otherwise stop the "
            "node that sends it",
        )
        return False
    if contradicts_known_leader(core, epoch, leader_id):
        core.refuse_claim(
            replica_id,
            f"claims that node {leader_id} leads epoch {epoch}, whose leader is {core.leader_id}",
        )
        return False
    return True


def has_next_epoch(core: Core) -> bool:
    """Return True if an election can raise the epoch. Report it if the last epoch is reached."""
    if core.epoch < MAX_EPOCH:
        return True
    core.refuse_claim(
        core.me.id,
        f"is in epoch {core.epoch}, the last possible one, and cannot be elected. Stop all voters "
        "and run `quorate storage repair-epoch` on each of them",
    )
    return False
