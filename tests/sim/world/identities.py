"""The identities of simulated processes: data in place of certificates (`Host.identity`)."""

from __future__ import annotations

from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.principal import USER, Principal
from quorate.quorum.rpc.node_identity import NodeProof, node_uri
from quorate.quorum.seams import PeerIdentity
from tests.sim.world.host import Host

CLIENT = PeerIdentity(Principal(USER, "client"), verified=True)
"""The identity of a client with a valid certificate."""


def identity_of_node(cluster_id: str, node_id: int) -> PeerIdentity:
    """Return the identity of a node that has the certificate of this cluster and id."""
    principal = Principal(USER, f"node-{node_id}")
    return PeerIdentity(principal, (node_uri(cluster_id, node_id),), verified=True)


def prove_identity(core: NodeCore, host: Host) -> None:
    """Let a node that starts prove its id to its peers, and demand the proof of all of them."""
    host.identity = identity_of_node(core.cluster_id, core.config.node_id)
    core.tls.proof = NodeProof(core.cluster_id, required=True)
