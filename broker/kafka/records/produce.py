"""Handles Produce (API key 0): passes batches to the replica manager, and returns the results.

This module does not decode the batches. The replica manager checks and appends them, and calls back
when `acks` is satisfied. With acks=0 the client expects no response. An error then closes the
connection, as in Kafka, and the client requests metadata again.

A request of few partitions is appended in one step. If it has more, or a batch whose keys take
long to check (`validation.takes_long`), it is checked and appended in several steps, each of which
the scheduler counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.kafka.shared.replicas import Replicas, TopicDirectory
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.broker.partition.key_check import CheckedKeys, checked_keys
from quorate.broker.partition.validation import may_be_long, takes_long
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    build_produce_response,
    build_produce_steps,
    parse_produce_request,
    parse_produce_steps,
)
from quorate.quorum.protocol.hot.primitives import chunks
from quorate.quorum.protocol.hot.produce import SLICED_ABOVE
from quorate.quorum.rpc.kafka.server import RequestContext

NO_ACKS = 0
"""The value of `acks` with which the client expects no response."""
PARTITIONS_PER_STEP = 32
"""Maximum number of partitions that are appended to in one step. The keys of
a batch that takes long are checked in steps of their own."""
Responder = Callable[[RequestContext, Sequence[ProducePartitionResult]], None]


@dataclass(frozen=True, slots=True)
class ProduceHandler:
    """Handles Produce on one listener of a broker, on the broker's event loop."""

    replicas: Replicas
    topics: TopicDirectory

    def handle(self, context: RequestContext, body: memoryview) -> IncrementalWork[None] | None:
        """Append the batches, and respond when `acks` is satisfied or the timeout is over.

        With acks=0 there is no response, and an error closes the connection.
        `body` is the request after its header. Return the steps of a large request, or None. Each
        partition has its own error. With a transactional id each partition gets
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED. Raise DecodeError if the request is malformed.
        """
        request = parse_produce_request(body, context.version)
        if request is None:
            return begun(self._handle_large(context, body))
        if (
            request.transactional_id is None
            and len(request.partitions) <= PARTITIONS_PER_STEP
            and not any(map(self._takes_long, request.partitions))
        ):
            done = context.callback(partial(self._responder(request), context))
            self.replicas.append(request.partitions, request.acks, request.timeout_ms, done)
            return None
        return self._append_or_refuse(context, request)

    def _takes_long(self, append: ProducePartition) -> bool:
        topic, topic_id, partition_id, records = append
        if records is None or not may_be_long(records):
            return False
        hosted = self.replicas.registry.find(topic, topic_id, partition_id)
        return hosted is not None and takes_long(records, hosted.partition.settings)

    def _parts(self, appends: Sequence[ProducePartition]) -> Iterator[list[ProducePartition]]:
        """Yield the appends in their order, as many at a time as one step may make."""
        part: list[ProducePartition] = []
        for append in appends:
            long = self._takes_long(append)
            if part and (long or len(part) == PARTITIONS_PER_STEP):
                yield part
                part = []
            part.append(append)
            if long:
                yield part
                part = []
        if part:
            yield part

    def _handle_large(self, context: RequestContext, body: memoryview) -> IncrementalWork[None]:
        request = yield from parse_produce_steps(body, context.version)
        yield from self._append_or_refuse(context, request)

    def _responder(self, request: ProduceRequest) -> Responder:
        return self._end_without_answer if request.acks == NO_ACKS else self._answer

    def _append_or_refuse(
        self, context: RequestContext, request: ProduceRequest
    ) -> IncrementalWork[None]:
        answer = self._responder(request)
        if request.transactional_id is None:
            done = context.callback(partial(answer, context))
            yield from self._append_in_parts(request, done)
            return
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        refused: list[ProducePartitionResult] = []
        for some in chunks(request.partitions):
            refused += [
                ProducePartitionResult(each.topic, each.topic_id, each.partition, error)
                for each in some
            ]
            yield
        answer(context, refused)

    def _append_in_parts(
        self, request: ProduceRequest, done: Callable[[Sequence[ProducePartitionResult]], None]
    ) -> IncrementalWork[None]:
        """Append one part in each step, and answer all of them together."""

        def join(parts: Sequence[Sequence[ProducePartitionResult]]) -> None:
            done([result for part in parts for result in part])

        parts: list[list[ProducePartition]] = []
        for part in self._parts(request.partitions):
            parts.append(part)
            yield
        collector = ResultCollector(len(parts), join)
        for index, part in enumerate(parts):
            yield
            done_with_part = collector.slot(index)
            keys: CheckedKeys | None = None
            if len(part) == 1 and self._takes_long(part[0]):
                keys = yield from checked_keys(part[0].records or b"")
            self.replicas.append(part, request.acks, request.timeout_ms, done_with_part, keys=keys)

    def _answer(
        self,
        context: RequestContext,
        results: Sequence[ProducePartitionResult],
        throttle_time_ms: int = 0,
    ) -> None:
        if len(results) > SLICED_ABOVE:
            context.run(self._answer_steps(context, results, throttle_time_ms))
            return
        leaders = [each.leader for each in results if each.leader is not None]
        endpoints = self.topics.endpoints(leaders) if leaders else ()
        context.respond_raw(
            build_produce_response(
                context.version, results, endpoints=endpoints, throttle_time_ms=throttle_time_ms
            )
        )

    def _answer_steps(
        self,
        context: RequestContext,
        results: Sequence[ProducePartitionResult],
        throttle_time_ms: int,
    ) -> IncrementalWork[None]:
        leaders = {each.leader for each in results if each.leader is not None}
        endpoints = self.topics.endpoints(leaders)
        body = yield from build_produce_steps(
            context.version, results, endpoints=endpoints, throttle_time_ms=throttle_time_ms
        )
        context.respond_raw(body)

    def _end_without_answer(
        self, context: RequestContext, results: Sequence[ProducePartitionResult]
    ) -> None:
        error = next((each.error for each in results if each.error), 0)
        if error:
            name = ErrorCode.of(error).name
            context.connection.refuse(f"Produce with acks=0 failed: {name}")
        context.no_response()
