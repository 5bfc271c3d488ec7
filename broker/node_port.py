"""The port of a broker for other nodes: Fetch of followers, probes, and HTTP for monitoring.

A controller that probes this port learns from the accepted connection that the process lives. The
port accepts the handshake of nodes, and serves no messages of theirs.

With TLS between nodes, a client that is no node is refused when it begins to speak Kafka's
protocol. It could otherwise hold connections and memory that followers need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quorate.broker.replication.fetches.replica_session import Respond
from quorate.quorum.incremental_work import IncrementalWork
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
from quorate.quorum.rpc.kafka.connection import Connection
from quorate.quorum.rpc.kafka.connection_quotas import (
    OTHERS_FILES,
    ConnectionLimits,
    ConnectionQuotas,
)
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext
from quorate.quorum.rpc.node_links import most_node_links
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.seams import Accept, Link, Wire

MAX_PROBES = 64
"""Maximum number of links between nodes on this port. Controllers open one for a moment to probe
the broker."""
MAX_FOLLOWER_CONNECTIONS = 4096
"""Maximum number of connections that speak Kafka's protocol; fewer if the process may open few
files."""
SLICED_ABOVE_BYTES = 64 << 10
SLICED_ABOVE = 2000
"""Requests of more bytes, and responses with more partitions, are handled in steps."""

FetchAsReplica = Callable[[FetchRequest, Respond, str | None], None]
"""A function that answers the Fetch of a follower (`ReplicaSessions.fetch`). It gets the client
id."""


def _respond_steps(
    context: RequestContext, error: int, session_id: int, partitions: Sequence[FetchPartitionResult]
) -> IncrementalWork[None]:
    parts = yield from build_fetch_steps(
        context.version, partitions, error=error, session_id=session_id
    )
    context.respond_raw(*parts)


class _Nobody:
    """NodeServerEvents that ignores all peers: they send no messages to this port."""

    def on_peer_up(self, channel: Channel) -> None:
        """Do nothing."""

    def on_peer_down(self, channel: Channel) -> None:
        """Do nothing."""


def node_port(
    settings: NodeSettings, fetch: FetchAsReplica, watch: Accept, resources: NodeResources
) -> Mapping[Wire, Accept]:
    """Return the handlers of the port, by the kind of connection.

    `fetch` answers the Fetch of a follower. `watch` serves HTTP. Large requests run in steps."""

    def handle(context: RequestContext, body: memoryview) -> IncrementalWork[None] | None:
        if len(body) > SLICED_ABOVE_BYTES:
            return handle_large(context, body)
        request = parse_fetch_request(body, context.version)
        serve(request, context)
        return None

    def handle_large(context: RequestContext, body: memoryview) -> IncrementalWork[None]:
        request = yield from parse_fetch_steps(body, context.version)
        serve(request, context)

    def serve(request: FetchRequest, context: RequestContext) -> None:
        connection = context.connection
        if reason := settings.proof.refusal(connection.link.identity, request.replica_id):
            connection.refuse(f"refused to serve a Fetch of a replica: {reason}")
        else:
            fetch(request, answer_to(context), context.client_id)

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

    def accept(link: Link) -> Connection:
        connection = kafka.accept(link)
        if reason := settings.proof.stranger(link.identity):
            connection.refuse(f"only nodes may use this port: {reason}")
        return connection

    most_links = min(MAX_PROBES, most_node_links())
    return {
        Wire.KAFKA: accept,
        Wire.NODE: NodeServer(settings, _Nobody(), most_links=most_links).accept,
        Wire.HTTP: watch,
    }
