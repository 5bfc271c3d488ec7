"""DescribeQuorum on a broker: forwarded to the active controller, unless the quorum is lost.

A broker that reaches no majority of the voters answers immediately with NOT_CONTROLLER and the
reason. Otherwise the request would wait for an active controller until its timeout, and the outage
would look like a slow node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.kafka.forwarding import Forwarding
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import DescribeQuorumResponse
from quorate.quorum.rpc.kafka.context import RequestContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumHandler:
    """The handler on one broker. `lost` returns the reason if the quorum is lost, or None."""

    lost: Callable[[], str | None]
    forwarding: Forwarding

    def handle(self, context: RequestContext, body: memoryview) -> None:
        """Answer the request, or forward it."""
        reason = self.lost()
        if reason is None:
            self.forwarding.handle(context, body)
            return
        context.respond(
            DescribeQuorumResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=reason, topics=()
            )
        )
