"""A node is believed only with a certificate for its cluster and its id."""

from __future__ import annotations

import pytest

from quorate.quorum.rpc.node_identity import NodeProof, node_uri
from quorate.quorum.seams import ANONYMOUS_PEER, PeerIdentity

URI = node_uri("c", 5)
OTHERS = {
    "no TLS": None,
    "no certificate": ANONYMOUS_PEER,
    "a certificate that was not verified": PeerIdentity(uris=(URI,)),
    "a client": PeerIdentity(verified=True),
    "another URI": PeerIdentity(uris=("https://example.com",), verified=True),
    "another node": PeerIdentity(uris=(node_uri("c", 6),), verified=True),
    "another cluster": PeerIdentity(uris=(node_uri("d", 5),), verified=True),
    "a longer id": PeerIdentity(uris=(URI + "0",), verified=True),
    "two nodes": PeerIdentity(uris=(URI, node_uri("c", 6)), verified=True),
}


@pytest.mark.parametrize("uris", [(URI,), ("https://example.com", URI)])
def test_the_node_of_the_uri_is_believed(uris: tuple[str, ...]) -> None:
    assert not NodeProof("c", required=True).refusal(PeerIdentity(uris=uris, verified=True), 5)


@pytest.mark.parametrize("kind", list(OTHERS))
def test_nobody_else_is_believed(kind: str) -> None:
    assert "node 5" in NodeProof("c", required=True).refusal(OTHERS[kind], 5)


def test_while_a_cluster_switches_only_links_without_tls_need_no_proof() -> None:
    proof = NodeProof("c", required=False)
    believed = [kind for kind, identity in OTHERS.items() if not proof.refusal(identity, 5)]
    assert believed == ["no TLS"]


@pytest.mark.parametrize("kind", list(OTHERS))
def test_a_stranger_is_no_node_of_the_cluster(kind: str) -> None:
    assert bool(NodeProof("c", required=True).stranger(OTHERS[kind])) == (
        kind not in ("another node", "a longer id")
    )


def test_while_a_cluster_switches_a_link_without_tls_may_be_a_node() -> None:
    proof = NodeProof("c", required=False)
    assert not proof.stranger(None)
    assert proof.stranger(ANONYMOUS_PEER)
    assert not proof.stranger(PeerIdentity(uris=(URI,), verified=True))
