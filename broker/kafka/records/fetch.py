"""Handles Fetch (API key 1) of consumers: returns records below the high watermark.

Since version 11 followers serve consumers, too, and a leader may name a follower to read from.

The records are slices of the log, which this broker does not decode. Followers fetch on the node
port. This port therefore refuses every replica id but -2, with which verification tools read up to
the log end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.kafka.shared.replicas import Replicas, TopicDirectory
from quorate.broker.replication.fetches.consumer_fetches import SLICED_ABOVE
from quorate.broker.replication.fetches.read_replicas import Reader
from quorate.broker.replication.fetches.reading import DEBUGGING_CONSUMER
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import (
    FetchPartitionResult,
    FetchRequest,
    NodeEndpoint,
    build_fetch_response,
    build_fetch_steps,
    parse_fetch_request,
    parse_fetch_steps,
)
from quorate.quorum.protocol.hot.fetch_request import CONSUMER, TOPIC_ID_SINCE
from quorate.quorum.protocol.hot.primitives import STEP_PARTITIONS
from quorate.quorum.rpc.kafka.server import RequestContext

SLICED_ABOVE_BYTES = 8 << 10
"""Requests whose body is larger are parsed in steps."""
TOP_LEVEL_ERROR_SINCE = 7
"""The first version whose response has an error of the whole request."""
READ_REPLICA_SINCE = 11
"""The first version whose response can name another replica to read from (KIP-392)."""


@dataclass(frozen=True, slots=True)
class FetchHandler:
    """Handles Fetch on one listener of a broker, on the broker's event loop."""

    replicas: Replicas
    topics: TopicDirectory
    max_bytes: int
    """The config fetch.max.bytes: the maximum size of the records of a response, even if the client
    asks for more. The first batch is returned even if it is larger."""

    def handle(self, context: RequestContext, body: memoryview) -> IncrementalWork[None] | None:
        """Respond when enough records are there, a partition has an error, or the request's time is
        over.

        `body` is the request after its header. Return the steps of a large request, or None. A
        request with a follower's replica id gets CLUSTER_AUTHORIZATION_FAILED, or before version 7
        a closed connection. Raise DecodeError if the request is malformed.
        """
        if len(body) > SLICED_ABOVE_BYTES:
            return self._handle_large(context, body)
        self._fetch(context, parse_fetch_request(body, context.version))
        return None

    def _handle_large(self, context: RequestContext, body: memoryview) -> IncrementalWork[None]:
        request = yield from parse_fetch_steps(body, context.version)
        self._fetch(context, request)

    def _fetch(self, context: RequestContext, request: FetchRequest) -> None:
        if request.replica_id not in (CONSUMER, DEBUGGING_CONSUMER):
            self._refuse(context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return
        reader = None
        if context.version >= READ_REPLICA_SINCE:
            reader = Reader(request.rack_id, self.topics.listener)
        self.replicas.fetch_as_consumer(
            request,
            self.max_bytes,
            context.callback(partial(self._respond, context)),
            uses_topic_ids=context.version >= TOPIC_ID_SINCE,
            client=context,
            reader=reader,
        )

    def _respond(
        self,
        context: RequestContext,
        error: int,
        session_id: int,
        results: Sequence[FetchPartitionResult],
    ) -> None:
        if len(results) > SLICED_ABOVE:
            context.run(self._respond_steps(context, error, session_id, results))
            return
        for result in results:
            self._count(result)
        context.respond_raw(
            *build_fetch_response(
                context.version,
                results,
                error=error,
                session_id=session_id,
                endpoints=self._endpoints(results),
            )
        )

    def _respond_steps(
        self,
        context: RequestContext,
        error: int,
        session_id: int,
        results: Sequence[FetchPartitionResult],
    ) -> IncrementalWork[None]:
        for at, result in enumerate(results, 1):
            self._count(result)
            if at % STEP_PARTITIONS == 0:
                yield
        parts = yield from build_fetch_steps(
            context.version,
            results,
            error=error,
            session_id=session_id,
            endpoints=self._endpoints(results),
        )
        context.respond_raw(*parts)

    def _endpoints(self, results: Sequence[FetchPartitionResult]) -> Sequence[NodeEndpoint]:
        leaders = [each.leader for each in results if each.leader is not None]
        return self.topics.endpoints(leaders) if leaders else ()

    def _count(self, result: FetchPartitionResult) -> None:
        registry = self.replicas.registry
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
