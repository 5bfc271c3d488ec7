"""Fetch (1) of consumers: what is below the high watermark, in slices of the log that are not
decoded.

Followers fetch on the node port; here a replica id is refused, but for -2, which reads to the log
end (for verification tools). Sessions are not kept on this port: a client that asks for one gets
session id 0, which means that every fetch is a full one (KIP-227).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.broker.kafka.replicas import Replicas, TopicDirectory
from quorate.broker.replication.fetches import Fetch
from quorate.broker.replication.reading import DEBUGGING_CONSUMER
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.hot import (
    FetchedPartition,
    build_fetch_response,
    parse_fetch_request,
)
from quorate.quorum.rpc.kafka.server import RequestContext

CONSUMER = -1
NO_SESSION = 0
FULL_FETCHES = (0, -1)  # session epochs: begin a session, and end it
TOP_LEVEL_ERROR_SINCE = 7


@dataclass(frozen=True, slots=True)
class FetchHandler:
    replicas: Replicas
    topics: TopicDirectory
    max_bytes: int
    """fetch.max.bytes: what one answer holds at most, whatever the client asks for."""

    def handle(self, context: RequestContext, body: memoryview) -> None:
        """Raw: the body after the header."""
        request = parse_fetch_request(body, context.version)
        if request.replica_id not in (CONSUMER, DEBUGGING_CONSUMER):
            self._refuse(context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return
        if request.session_id != NO_SESSION or request.session_epoch not in FULL_FETCHES:
            self._refuse(context, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return
        fetch = Fetch(
            partitions=request.partitions,
            replica_id=request.replica_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=min(request.max_bytes, self.max_bytes),
        )
        self.replicas.fetch(fetch, lambda results: self._respond(context, results))

    def _respond(self, context: RequestContext, results: Sequence[FetchedPartition]) -> None:
        leaders = [each.leader for each in results if each.leader is not None]
        endpoints = self.topics.endpoints(leaders) if leaders else ()
        context.respond_raw(*build_fetch_response(context.version, results, endpoints=endpoints))

    def _refuse(self, context: RequestContext, error: ErrorCode) -> None:
        if context.version < TOP_LEVEL_ERROR_SINCE:
            context.connection.refuse(f"Fetch refused: {error.name}")
            context.no_response()
        else:
            context.respond_raw(*build_fetch_response(context.version, (), error=error))
