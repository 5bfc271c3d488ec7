"""The rule for HTTP requests to the port of nodes: who may ask for which path.

| path | node without TLS and token | node with TLS, or with a token |
|---|---|---|
| /healthz, /readyz | everybody | everybody, because orchestrators have no certificate |
| any other | everybody | holders of a certificate of the truststore, and of the token |

While a cluster switches to TLS (`quorate.node.tls`), requests without TLS are answered as before,
unless there is a token. Unknown paths are refused like the others.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.seams import PeerIdentity

PUBLIC = frozenset(("/healthz", "/readyz"))
CHALLENGE = (("WWW-Authenticate", "Bearer"),)


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """The rule of one node. `token` admits its bearers. `demands_proof` is True if the node accepts
    no links without TLS."""

    token: str | None = field(default=None, repr=False)
    demands_proof: bool = False

    def refusal(
        self, path: str, identity: PeerIdentity | None, bearer: str | None
    ) -> HttpResponse | None:
        """Return the response to a request that is refused, or None if it may be answered.

        `identity` is what the client has proved, or None without TLS. `bearer` is the token of its
        Authorization header."""
        if path in PUBLIC or not (self.demands_proof or self.token or identity):
            return None
        if identity is not None and identity.verified:
            return None
        if self.token and bearer and hmac.compare_digest(self.token.encode(), bearer.encode()):
            return None
        return HttpResponse(
            b"this node demands a certificate of its truststore, or the token of "
            b"quorate.http.token.file in the header Authorization: Bearer\n",
            status=401,
            headers=CHALLENGE,
        )
