"""A process that tells every lie, but cannot prove that it is the node that it claims to be.

`lies.py` lists lies against which nothing protects a cluster that believes the ids of its nodes.
With identities on links, nodes refuse these lies together with all other messages of the process.
"""

from __future__ import annotations

import asyncio
from unittest import mock

from quorate.quorum.raft.messages import FetchRequest
from quorate.quorum.seams import ANONYMOUS_PEER, PeerIdentity
from tests.sim.adversary import peer
from tests.sim.adversary.peer import FaultyNode, Identity
from tests.sim.adversary.scenes import sane
from tests.sim.adversary.values import OWN_ID
from tests.sim.run import PLACES, Simulation
from tests.sim.scripts.staging import cut, healed, settled, writes_some
from tests.sim.world.identities import CLIENT, identity_of_node

ROUNDS = 2
PAUSE_S, CUT_S = 1.0, 0.4
"""The two parts of a round. In the first part the controllers reach each other, and in the second
they do not."""
ACKNOWLEDGEMENTS = 8
ADMIN_PACE_S = 0.05
OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


async def tells_every_lie(stage: Simulation, identity: PeerIdentity) -> None:
    """Let a process with this identity lie while a producer writes. The cluster takes no harm.

    While the controllers do not reach each other, the process acknowledges the records of the
    active one."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    node = FaultyNode(stage.cluster, None)
    node.host.identity = identity
    stage.adversaries.append(node)
    stage.invariants.doubts_expected = True
    with (
        mock.patch.object(peer, "is_outside_the_model", lambda *_: False),
        mock.patch.object(peer, "acknowledges_for_replica", lambda *_: False),
    ):
        node.start()
        stage.admin.start(ADMIN_PACE_S)
        await acknowledges(stage, node)
        node.stop()
    await healed(stage)


async def acknowledges(
    stage: Simulation, node: FaultyNode, speaker: Identity | None = None
) -> None:
    """Acknowledge records of the active controller that no other controller has."""
    for _ in range(ROUNDS):
        await asyncio.sleep(PAUSE_S)
        cut(stage, stage.cluster.controllers, stage.cluster.controllers)
        for _ in range(ACKNOWLEDGEMENTS):
            await asyncio.sleep(CUT_S / ACKNOWLEDGEMENTS)
            await node.host.spawn(acknowledge_everything(stage, node, speaker))
        stage.cluster.network.heal()


async def acknowledge_everything(
    stage: Simulation, node: FaultyNode, speaker: Identity | None = None
) -> None:
    """Report to the active controller, in the name of each other voter, that the newest records are
    on the disk of this voter."""
    active = stage.cluster.active_controllers()
    if not active:
        return
    leader = active[0]
    assert leader.process is not None
    replica = leader.process.core.replica
    epoch, end = replica.raft.epoch, replica.end_offset
    for voter in stage.cluster.controllers:
        if voter is not leader:
            key = [voter.key.id, voter.key.directory_id]
            row = [stage.cluster.cluster_id, key, epoch, end, epoch, 0, 1000, end, False]
            await node.tell(sane(), leader, FetchRequest, row, speaker)


async def a_stranger_tells_every_lie(stage: Simulation) -> None:
    """Let a process without a certificate tell every lie."""
    await tells_every_lie(stage, ANONYMOUS_PEER)


async def a_client_tells_every_lie(stage: Simulation) -> None:
    """Let a process with the certificate of a client tell every lie."""
    await tells_every_lie(stage, CLIENT)


async def a_node_of_another_cluster_tells_every_lie(stage: Simulation) -> None:
    """Let a process with a certificate of another cluster tell every lie. The certificate has the
    id of a voter."""
    await tells_every_lie(stage, identity_of_node(OTHER_CLUSTER, 1))


async def a_node_acknowledges_for_another_one(stage: Simulation) -> None:
    """Let a node of the cluster acknowledge records for others. It shakes hands as itself, and its
    messages name other voters."""
    await settled(stage)
    stage.admin.start(ADMIN_PACE_S)
    node = FaultyNode(stage.cluster, ())
    node.host.identity = identity_of_node(stage.cluster.cluster_id, OWN_ID)
    stage.adversaries.append(node)
    stage.invariants.doubts_expected = True
    with mock.patch.object(peer, "is_outside_the_model", lambda *_: False):
        await acknowledges(stage, node, (OWN_ID, bytes(range(16))))
    await healed(stage)


IMPOSTORS = (a_client_tells_every_lie, a_node_of_another_cluster_tells_every_lie)
"""The scenarios that no ablation uses."""
