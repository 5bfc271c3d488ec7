"""The lies that the faulty node does not tell, because they are outside of the fault model.

Raft and the replication of partitions tolerate nodes that stop, not nodes that lie about what they
have stored (README.md). Unless nodes prove their identities, nothing distinguishes such a lie from
the truth:

- a voter's acknowledgement: Fetch or FetchSnapshot under a voter's key;
- a voter's log: Vote, not pre-vote, for a voter's key, which names the end of its log;
- a voter's identity: UpdateVoter under a voter's id, and a false address of a leader;
- a broker's state: Heartbeat, AlterPartition and AllocateProducerIds under a registered broker's id
  and its current epoch;
- a replica's acknowledgement: Fetch on a broker's replication port under a broker's id, unless it
  names an older epoch of that broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.controller.state import messages as controller
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.raft import messages as raft
from tests.sim.adversary.rows import Row, at
from tests.sim.adversary.values import Aims


def _names_voter(key: Any, aims: Aims) -> bool:
    """Return True if the key is a controller's own. A key with another directory is an
    impostor's."""
    for machine in aims.cluster.controllers:
        if at(key, 0) == machine.id and at(key, 1) in (machine.key.directory_id, ZERO_UUID):
            return True
    return False


def _acknowledges(row: Row, aims: Aims) -> bool:
    return _names_voter(at(row, 1), aims)


def _votes(row: Row, aims: Aims) -> bool:
    return at(row, 5) is not True and _names_voter(at(row, 2), aims)


def _moves_voter(row: Row, aims: Aims) -> bool:
    return at(row, 3, 0) in aims.controller_ids or at(row, 1, 0) in aims.controller_ids


def _is_current_broker(row: Row, aims: Aims) -> bool:
    broker = aims.image.brokers.get(at(row, 0)) if isinstance(at(row, 0), int) else None
    return broker is not None and broker.id in aims.node_ids and at(row, 1) == broker.epoch


def _gives_false_address(row: Row, aims: Aims) -> bool:
    return at(row, 2) in aims.controller_ids and at(row, 4) is not None


LIES: dict[type, Callable[[Row, Aims], bool]] = {
    raft.VoteRequest: _votes,
    raft.BeginQuorumEpochRequest: _gives_false_address,
    raft.FetchRequest: _acknowledges,
    raft.FetchSnapshotRequest: _acknowledges,
    raft.UpdateVoterRequest: _moves_voter,
    controller.BrokerHeartbeatRequest: _is_current_broker,
    controller.AlterPartitionRequest: _is_current_broker,
    controller.AllocateProducerIdsRequest: _is_current_broker,
    controller.AssignReplicasToDirsRequest: _is_current_broker,
}


def is_outside_the_model(cls: type, row: Row, aims: Aims) -> bool:
    """Return True if the row of a `cls` holds a lie against which nothing protects."""
    rule = LIES.get(cls)
    return rule is not None and rule(row, aims)


def acknowledges_for_replica(replica_id: int, replica_epoch: int, aims: Aims) -> bool:
    """Return True if a follower's Fetch may count as that of a registered broker."""
    broker = aims.image.brokers.get(replica_id)
    return broker is not None and not 0 <= replica_epoch < broker.epoch
