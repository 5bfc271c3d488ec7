"""Fetch on the node port: followers with their sessions, in Kafka's framing.

The client port has a handler of its own, which lets no replica id pass; this one is for brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.broker.replication.fetches import Fetch
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.broker.replication.sessions import FINAL_EPOCH
from quorate.quorum.rpc.kafka.hot.fetch_request import parse_fetch_request
from quorate.quorum.rpc.kafka.hot.fetch_response import FetchedPartition, build_fetch_response
from quorate.quorum.rpc.kafka.server import RequestContext


def replica_fetch_handler(
    replicas: ReplicaManager,
) -> Callable[[RequestContext, memoryview], None]:
    """A raw handler of ApiKey.FETCH."""

    def handle(context: RequestContext, body: memoryview) -> None:
        version = context.version
        request = parse_fetch_request(body, version)

        def respond(error: int, session_id: int, partitions: Sequence[FetchedPartition]) -> None:
            if not context.closed:
                context.respond_raw(
                    *build_fetch_response(version, partitions, error=error, session_id=session_id)
                )

        if request.replica_id < 0 or (request.session_epoch == FINAL_EPOCH and request.partitions):
            fetch = Fetch(
                partitions=request.partitions,
                replica_id=request.replica_id,
                broker_epoch=request.replica_epoch,
                max_wait_ms=request.max_wait_ms,
                min_bytes=request.min_bytes,
                max_bytes=request.max_bytes,
            )
            replicas.fetch(fetch, lambda partitions: respond(0, 0, partitions))
        else:
            replicas.fetch_as_replica(request, respond)

    return handle
