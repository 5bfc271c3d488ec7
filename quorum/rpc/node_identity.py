"""The proof of a node's identity: a certificate that names its cluster and its id.

A listener for nodes with TLS accepts messages of a node only if a certificate authority of the
truststore has issued a certificate with the URI of that node. The URI binds the certificate to one
cluster and one id, so that no node can speak for another one, and no client for a node. The
connecting node checks the listening node in the same way. It does not compare host names: an
address is not a part of a node's identity, and may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.quorum.clipped import quoted
from quorate.quorum.seams import PeerIdentity

SCHEME = "quorate://"
NODE_PATH = "/node/"


def node_uri(cluster_id: str, node_id: int) -> str:
    """Return the URI that the certificate of a node has among its subject alternative names."""
    return f"{SCHEME}{cluster_id}{NODE_PATH}{node_id}"


def named_nodes(uris: Iterable[str]) -> list[str]:
    """Return the URIs of a certificate that name nodes, of any cluster. A certificate with more
    than one of them proves nothing."""
    return [uri for uri in uris if uri.startswith(SCHEME)]


@dataclass(frozen=True, slots=True)
class NodeProof:
    """The rule for links of the nodes of one cluster.

    `required` is False while nodes without TLS may still connect, and in a cluster without TLS."""

    cluster_id: str
    required: bool

    def refusal(self, identity: PeerIdentity | None, node_id: int) -> str:
        """Return the reason why a peer is not believed to be `node_id`, or an empty string.

        `identity` is what the peer has proved, or None if the link has no TLS."""
        if identity is None:
            if not self.required:
                return ""
            return f"node {node_id} does not use TLS, which quorate.node.tls=require demands"
        if not identity.verified:
            return f"node {node_id} has shown no certificate"
        expected = node_uri(self.cluster_id, node_id)
        shown = named_nodes(identity.uris)
        if shown == [expected]:
            return ""
        text = " and ".join(map(quoted, shown)) or f"{identity.principal}, which is no node"
        return (
            f"the certificate of the peer that claims to be node {node_id} is for {text}, and not "
            f"for {expected!r}"
        )

    def stranger(self, identity: PeerIdentity | None) -> str:
        """Return the reason why a peer can be no node of this cluster, or an empty string."""
        if identity is None:
            return "it does not use TLS" if self.required else ""
        shown = named_nodes(identity.uris)
        nodes = f"{SCHEME}{self.cluster_id}{NODE_PATH}"
        if identity.verified and len(shown) == 1 and shown[0].startswith(nodes):
            return ""
        return "it has shown no certificate of a node of this cluster"


UNPROVED = NodeProof("", required=False)
"""The rule of nodes without TLS: every peer is believed."""
