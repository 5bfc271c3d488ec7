"""Fetch (1) of consumers: what is below the high watermark, in slices of the log that are not
decoded.

Followers fetch on the node port; here a replica id is refused, but for -2, which reads to the log
end (for verification tools).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.kafka.replicas import Replicas, TopicDirectory
from quorate.broker.replication.reading import DEBUGGING_CONSUMER
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.hot import (
    FetchedPartition,
    build_fetch_response,
    parse_fetch_request,
)
from quorate.quorum.rpc.kafka.hot.fetch_request import CONSUMER, TOPIC_ID_SINCE
from quorate.quorum.rpc.kafka.server import RequestContext

TOP_LEVEL_ERROR_SINCE = 7


@dataclass(frozen=True, slots=True)
class FetchHandler:
    replicas: Replicas
    topics: TopicDirectory
    max_bytes: int
    """fetch.max.bytes: what one answer holds at most, whatever the client asks for."""

    def handle(self, context: RequestContext, body: memoryview) -> None:
        """Raw: the body after the header."""
        version = context.version
        request = parse_fetch_request(body, version)
        if request.replica_id not in (CONSUMER, DEBUGGING_CONSUMER):
            self._refuse(context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return
        context.on_abandoned = self.replicas.fetch_as_consumer(
            request,
            self.max_bytes,
            context.callback(partial(self._respond, context)),
            uses_topic_ids=version >= TOPIC_ID_SINCE,
        )

    def _respond(
        self,
        context: RequestContext,
        error: int,
        session_id: int,
        results: Sequence[FetchedPartition],
    ) -> None:
        self._count(results)
        leaders = [each.leader for each in results if each.leader is not None]
        endpoints = self.topics.endpoints(leaders) if leaders else ()
        context.respond_raw(
            *build_fetch_response(
                context.version, results, error=error, session_id=session_id, endpoints=endpoints
            )
        )

    def _count(self, results: Sequence[FetchedPartition]) -> None:
        registry = self.replicas.registry
        for result in results:
            hosted = registry.find(result.topic, result.topic_id, result.partition)
            traffic = registry.traffic.elsewhere if hosted is None else hosted.traffic
            traffic.fetch_requests += 1
            traffic.bytes_out += len(result.records)
            if result.error:
                traffic.failed_fetch_requests += 1

    def _refuse(self, context: RequestContext, error: ErrorCode) -> None:
        if context.version < TOP_LEVEL_ERROR_SINCE:
            context.connection.refuse(f"Fetch refused: {error.name}")
            context.no_response()
        else:
            context.respond_raw(*build_fetch_response(context.version, (), error=error))
