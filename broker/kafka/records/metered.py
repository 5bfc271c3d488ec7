"""Produce and Fetch while client quotas are set: the bytes of each client are counted.

These handlers replace those of `produce.py` and `fetch.py` (`quorum/rpc/kafka/metering.py`). The
bytes of a Produce are those of its request, and are counted when it is answered. The bytes of a
Fetch are those of its response. If they exceed the quota, the response has no records, and the
fetch session remembers that the client has not received them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.kafka.records.fetch import FetchHandler
from quorate.broker.kafka.records.produce import ProduceHandler
from quorate.broker.replication.fetches.fetch_session_cache import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
)
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.hot import (
    FetchPartitionResult,
    FetchRequest,
    ProducePartitionResult,
    build_fetch_response,
)
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.rpc.kafka.metered_context import MeteredContext
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True)
class MeteredProduceHandler(ProduceHandler):
    """Handles Produce on a metered listener."""

    def handle(self, context: RequestContext, body: memoryview) -> IncrementalWork[None] | None:
        """Append and respond as `ProduceHandler.handle` does."""
        if isinstance(context, MeteredContext):
            context.body_bytes = len(body)
        return ProduceHandler.handle(self, context, body)

    def _answer(
        self,
        context: RequestContext,
        results: Sequence[ProducePartitionResult],
        throttle_time_ms: int = 0,
    ) -> None:
        if isinstance(context, MeteredContext):
            throttle_time_ms = context.produced()
        ProduceHandler._answer(self, context, results, throttle_time_ms)

    def _end_without_answer(
        self, context: RequestContext, results: Sequence[ProducePartitionResult]
    ) -> None:
        if isinstance(context, MeteredContext):
            context.produced_without_response()
        ProduceHandler._end_without_answer(self, context, results)


@dataclass(frozen=True, slots=True)
class MeteredFetchHandler(FetchHandler):
    """Handles Fetch on a metered listener."""

    quotas: ClientQuotas

    def _fetch(self, context: RequestContext, request: FetchRequest) -> None:
        if isinstance(context, MeteredContext):
            context.full_fetch = request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH)
            now_ms = context.connection.clock.now_ms()
            most = self.quotas.max_fetch_bytes(
                context.client_id or "", now_ms, context.principal.name
            )
            if most is not None and most < request.max_bytes:
                request = request._replace(max_bytes=most, min_bytes=min(request.min_bytes, most))
        FetchHandler._fetch(self, context, request)

    def _respond(
        self,
        context: RequestContext,
        error: int,
        session_id: int,
        results: Sequence[FetchPartitionResult],
    ) -> None:
        if isinstance(context, MeteredContext):
            context.withhold = partial(self._without_records, context, error, session_id, results)
        FetchHandler._respond(self, context, error, session_id, results)

    def _without_records(
        self,
        context: MeteredContext,
        error: int,
        session_id: int,
        results: Sequence[FetchPartitionResult],
        throttle_time_ms: int,
    ) -> Sequence[Buffer]:
        """Return the body of a throttled response.

        A session that the request would have begun ends, as in Kafka. An existing one remains."""
        full = context.full_fetch
        for result in results:
            if not len(result.records):
                continue
            hosted = self.replicas.registry.find(result.topic, result.topic_id, result.partition)
            traffic = self.replicas.registry.traffic.elsewhere if hosted is None else hosted.traffic
            traffic.bytes_out -= len(result.records)
        if session_id != NO_SESSION:
            self.replicas.withdraw_fetch(session_id, results, ends=full)
        return build_fetch_response(
            context.version,
            (),
            error=error,
            session_id=NO_SESSION if full else session_id,
            throttle_time_ms=throttle_time_ms,
        )
