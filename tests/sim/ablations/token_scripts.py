"""Histories of clients with bearer tokens at a listener with OAUTHBEARER."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest
from tests.ports.node import BROKER_PORT, PortCluster
from tests.ports.test_oauthbearer import PROVIDER, is_refused, listening, show, wall_ms
from tests.tokens import TokenProvider

STRANGER = TokenProvider({"k1": ("ES256", 1)})


def clients_show_tokens() -> None:
    """Show tokens that a stranger has signed, or that are for another service. Then let a user stay
    after the end of its token."""
    with TemporaryDirectory() as directory, listening(Path(directory)) as node:
        forged = STRANGER.token(wall_ms(node))
        assert refused(node, forged), "a token with the signature of a stranger was accepted"
        foreign = PROVIDER.token(wall_ms(node), aud="another service")
        assert refused(node, foreign), "a token for another service was accepted"
        user = node.connect(BROKER_PORT)
        assert show(node, user, PROVIDER.token(wall_ms(node), seconds=5)).error_code == 0
        node.run(6)
        node.send(user, ListGroupsRequest(), 4, 8)
        node.run(1)
        assert user.closed, "a client was served after the end of its token"


def refused(node: PortCluster, token: str) -> bool:
    """Return True if a new client with this token is refused."""
    return is_refused(node, node.connect(BROKER_PORT), token)
