"""The port that only other nodes use: followers' Fetch in Kafka's framing, and probes; and those
who watch (`quorum/watch`).

A controller that probes this port learns that the process lives from the connection alone; no
messages of nodes are served here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quorate.broker.replication.replica_sessions import Respond
from quorate.quorum.open_files import open_files
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.hot import (
    FetchPartitionResult,
    build_fetch_response,
    build_fetch_steps,
    parse_fetch_request,
    parse_fetch_steps,
)
from quorate.quorum.protocol.hot.fetch_request import FetchRequest
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.handshake import NodeSettings
from quorate.quorum.rpc.kafka.connection_quotas import (
    OTHERS_FILES,
    ConnectionLimits,
    ConnectionQuotas,
)
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.seams import Accept, Wire
from quorate.quorum.steps import Steps

MAX_FOLLOWER_CONNECTIONS = 4096
SLICED_ABOVE_BYTES = 64 << 10
SLICED_ABOVE = 2000
"""Larger requests, and responses with more partitions, are handled in steps."""

FetchAsReplica = Callable[[FetchRequest, Respond], None]


def _respond_steps(
    context: RequestContext, error: int, session_id: int, partitions: Sequence[FetchPartitionResult]
) -> Steps[None]:
    parts = yield from build_fetch_steps(
        context.version, partitions, error=error, session_id=session_id
    )
    context.respond_raw(*parts)


class _Nobody:
    """NodeServerEvents: whoever connects here has nothing to say."""

    def on_peer_up(self, channel: Channel) -> None: ...

    def on_peer_down(self, channel: Channel) -> None: ...


def node_port(
    settings: NodeSettings, fetch: FetchAsReplica, watch: Accept, resources: NodeResources
) -> Mapping[Wire, Accept]:
    def handle(context: RequestContext, body: memoryview) -> Steps[None] | None:
        if len(body) > SLICED_ABOVE_BYTES:
            return handle_large(context, body)
        fetch(parse_fetch_request(body, context.version), answer_to(context))
        return None

    def handle_large(context: RequestContext, body: memoryview) -> Steps[None]:
        request = yield from parse_fetch_steps(body, context.version)
        fetch(request, answer_to(context))

    def answer_to(context: RequestContext) -> Respond:
        def respond(
            error: int, session_id: int, partitions: Sequence[FetchPartitionResult]
        ) -> None:
            if len(partitions) > SLICED_ABOVE:
                context.run(_respond_steps(context, error, session_id, partitions))
                return
            context.respond_raw(
                *build_fetch_response(
                    context.version, partitions, error=error, session_id=session_id
                )
            )

        return context.callback(respond)

    limits = ConnectionLimits(
        max_connections=min(MAX_FOLLOWER_CONNECTIONS, open_files() // OTHERS_FILES)
    )
    connections = ConnectionQuotas(settings.clock, limits)
    kafka = KafkaServer(
        {},
        settings.clock,
        raw_handlers={ApiKey.FETCH: handle},
        quotas=connections,
        resources=resources,
    )
    return {
        Wire.KAFKA: kafka.accept,
        Wire.NODE: NodeServer(settings, _Nobody()).accept,
        Wire.HTTP: watch,
    }
