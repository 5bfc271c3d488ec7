"""The rule for HTTP requests to the port of nodes: each path, and the clients that may ask for it.

| path | node without TLS and token | node with TLS, or with a token |
|---|---|---|
| /healthz, /readyz | everybody | everybody, because orchestrators have no certificate |
| any other | everybody | bearers of the token, and holders of a certificate (below) |

A certificate of the truststore admits a node of the cluster. It also admits any other client if the
node has no authorizer, or if the ACLs permit its principal to describe the cluster. While a cluster
switches to TLS (`quorate.node.tls`), requests without TLS are answered as before, unless there is a
token. Unknown paths are refused like the others.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.config.node_tls import demands_tls
from quorate.quorum.principal import Principal
from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.rpc.kafka.node_authorizer import node_authorizer
from quorate.quorum.rpc.node_identity import node_uri
from quorate.quorum.seams import PeerIdentity
from quorate.quorum.watch.node_view import NodeView

PUBLIC = frozenset(("/healthz", "/readyz"))
CHALLENGE = (("WWW-Authenticate", "Bearer"),)
MayDescribe = Callable[[Principal, str], bool]
"""Returns True if the ACLs permit a principal at a host to describe the cluster."""


def everybody(principal: Principal, host: str) -> bool:
    """Permit everything: the node has no authorizer."""
    return True


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """The rule of one node. `tokens` returns the tokens that admit their bearers. `demands_proof`
    is True if the node accepts no links without TLS. The URIs of the cluster's nodes begin with
    `node_prefix`."""

    tokens: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False)
    demands_proof: bool = False
    may_describe: MayDescribe = everybody
    node_prefix: str = ""

    def refusal(
        self, path: str, identity: PeerIdentity | None, bearer: str | None, host: str
    ) -> HttpResponse | None:
        """Return the response to a request that is refused, or None if it may be answered.

        `identity` is what the client at `host` has proved, or None without TLS. `bearer` is the
        token of its Authorization header."""
        tokens = self.tokens()
        if path in PUBLIC or not (self.demands_proof or tokens or identity):
            return None
        if bearer and any(hmac.compare_digest(t.encode(), bearer.encode()) for t in tokens):
            return None
        if identity is None or not identity.verified:
            return HttpResponse(
                b"this node demands a certificate of its truststore, or the token of "
                b"quorate.http.token.file in the header Authorization: Bearer\n",
                status=401,
                headers=CHALLENGE,
            )
        is_node = self.node_prefix and any(u.startswith(self.node_prefix) for u in identity.uris)
        if is_node or self.may_describe(identity.principal, host):
            return None
        text = f"{identity.principal} needs the permission to DESCRIBE the cluster\n"
        return HttpResponse(text.encode(), status=403)


def http_access(node: NodeView, tokens: Callable[[], tuple[str, ...]]) -> HttpAccess:
    """Return the rule of a node with these tokens."""
    authorizer = node_authorizer(node.config, node.clock, lambda: node.image)

    def may_describe(principal: Principal, host: str) -> bool:
        if authorizer is None:
            return True
        permits = authorizer.permits_for(principal, host, ApiKey.DESCRIBE_CLUSTER)
        return permits.cluster(Operation.DESCRIBE)

    prefix = node_uri(node.cluster_id, 0).removesuffix("0")
    return HttpAccess(tokens, demands_tls(node.config), may_describe, prefix)
