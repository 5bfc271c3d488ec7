"""DescribeQuorum on a broker: forwarded to the active controller, unless the quorum is lost.

A broker that reaches no majority of the voters answers immediately with NOT_CONTROLLER and the
reason. Otherwise the request would wait for an active controller until its timeout, and the outage
would look like a slow node. The reason tells which voters are reachable, so a broker with an
authorizer sends it only to clients that may describe the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.kafka.shared.forwarding import Forwarding
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import DescribeQuorumResponse
from quorate.quorum.rpc.kafka.context import RequestContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumHandler:
    """The handler on one broker. `lost` returns the reason if the quorum is lost, or None.
    `permits` returns the permissions of the client of a request. It is None without an
    authorizer."""

    lost: Callable[[], str | None]
    forwarding: Forwarding
    permits: Callable[[RequestContext], Permits] | None = None

    def handle(self, context: RequestContext, body: memoryview) -> None:
        """Answer the request, or forward it."""
        reason = self.lost()
        if reason is None:
            self.forwarding.handle(context, body)
            return
        if self.permits is not None and not self.permits(context).cluster(Operation.DESCRIBE):
            context.fail(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return
        context.respond(
            DescribeQuorumResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=reason, topics=()
            )
        )
