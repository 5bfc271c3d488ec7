"""Claims of other nodes that this node does not believe, and the log line that says so.

Raft is not Byzantine-tolerant. A node that lies can stall this one: it can raise epochs within
MAX_EPOCH_JUMP, name a leader that does not exist, or, as the elected leader, call records committed
that are not. The rules here keep such a node from *stopping* this one: a message that contradicts
what this node knows is refused, and nothing of it is kept.

| claim | what this node does |
|---|---|
| an epoch more than MAX_EPOCH_JUMP above its own, while its log has records | refuses the message |
| another leader of an epoch whose leader it knows | refuses the message, follows as before |
| records of a later epoch than the leader's, or that cannot be read | appends nothing, asks
  again later |
| a log that lacks records that are committed here | truncates nothing, asks again later |
| a snapshot below what is committed here, of a later epoch, or larger than MAX_SNAPSHOT_BYTES |
  fetches nothing, asks again later |
| an answer to a fetch for another epoch or leader than the one that was asked | asks again later |
"""

from __future__ import annotations

from quorate.quorum.bounds import INT32_MAX
from quorate.quorum.ids import NO_NODE
from quorate.quorum.raft.core import Core

MAX_EPOCH = INT32_MAX
MAX_EPOCH_JUMP = 1 << 20
"""Epochs grow by one with each election. A million elections that a node with records missed mean
a false message, which would use up the epochs that are left for elections. A node without records
believes any epoch, because it may join an old quorum."""


def is_plausible(core: Core, epoch: int) -> bool:
    """Return True if `epoch` can be that of this quorum."""
    return epoch - core.epoch <= MAX_EPOCH_JUMP or core.log.end_offset == 0


def contradicts_known_leader(core: Core, epoch: int, leader_id: int) -> bool:
    """Return True if this node knows another leader of `epoch` than `leader_id`."""
    if epoch != core.epoch or NO_NODE in (leader_id, core.leader_id):
        return False
    return leader_id not in (core.leader_id, core.me.id)


def is_credible(core: Core, epoch: int, leader_id: int, replica_id: int) -> bool:
    """Return True if `replica_id` may be right that `leader_id` leads `epoch`. If not, say so."""
    if not is_plausible(core, epoch):
        core.refuse_claim(
            replica_id,
            f"claims epoch {epoch}, this node is in {core.epoch}. If the claim is right, format "
            "this node's disk anew and let it catch up; if not, find that node",
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
    """Return True if an election can raise the epoch. If not, say so: the file has to be mended."""
    if core.epoch < MAX_EPOCH:
        return True
    core.refuse_claim(
        core.me.id,
        f"is in epoch {core.epoch}, the last that there is: it cannot be elected. Stop all voters "
        "and run `quorate storage repair-epoch` on each of them",
    )
    return False
