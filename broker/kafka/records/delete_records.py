"""Handles DeleteRecords (API key 21): raises the log start offset of partitions (KIP-107).

The replica manager deletes the records and waits for the replicas. This module divides the request
into parts, refuses the internal topics, and builds the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from quorate.broker.kafka.shared.replicas import Replicas
from quorate.broker.kafka.shared.request_parts import all_parts
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.broker.replication.appends.delete_records import DeletionRequest, DeletionResult
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext

INTERNAL_TOPIC_REFUSED = DeletionResult(-1, ErrorCode.INVALID_TOPIC_EXCEPTION)
"""The result for each partition of an internal topic: only its coordinators delete its records."""


@dataclass(frozen=True, slots=True)
class DeleteRecordsHandler:
    """Handles DeleteRecords on one broker, on the broker's event loop."""

    replicas: Replicas

    def handle(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> IncrementalWork[None] | None:
        """Delete the records below the given offsets, and respond when all partitions are decided.

        A partition is decided when its in-sync replicas have deleted the records, when it has an
        error, or when the timeout is over. Each partition has its own error. A partition of an
        internal topic gets INVALID_TOPIC_EXCEPTION. Return the steps that are left, or None.
        """
        return begun(self._delete_records(context, request))

    def _delete_records(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> IncrementalWork[None]:
        def respond(answers: Sequence[Sequence[DeletionResult]]) -> None:
            context.run(self._respond(context, request, answers))

        parts = yield from all_parts(request.topics, "partitions")
        collector = ResultCollector(len(parts), respond)
        for index, part in enumerate(parts):
            if index:
                yield
            self._delete(part, max(0, request.timeout_ms), collector.slot(index))

    def _respond(
        self,
        context: RequestContext,
        request: DeleteRecordsRequest,
        answers: Sequence[Sequence[DeletionResult]],
    ) -> IncrementalWork[None]:
        response = yield from deletion_response(request, chain.from_iterable(answers))
        yield from context.respond_steps(response)

    def _delete(
        self,
        topics: Sequence[DeleteRecordsTopic],
        timeout_ms: int,
        done: Callable[[Sequence[DeletionResult]], None],
    ) -> None:
        asked = [
            DeletionRequest(topic.name, each.partition_index, each.offset)
            for topic in topics
            for each in topic.partitions
        ]
        allowed = [each for each in asked if each.topic not in INTERNAL_TOPICS]

        def answer(results: Sequence[DeletionResult]) -> None:
            found = iter(results)
            done(
                [
                    INTERNAL_TOPIC_REFUSED if each.topic in INTERNAL_TOPICS else next(found)
                    for each in asked
                ]
            )

        self.replicas.delete_records(allowed, timeout_ms, answer)


def deletion_response(
    request: DeleteRecordsRequest, results: Iterable[DeletionResult]
) -> IncrementalWork[DeleteRecordsResponse]:
    """Return the response, in steps. `results` are in the order of the request's partitions."""
    answers = iter(results)
    topics, pace = [], Pace()
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            answer = next(answers)
            partitions.append(
                DeleteRecordsPartitionResult(
                    partition_index=each.partition_index,
                    low_watermark=answer.low_watermark,
                    error_code=answer.error,
                )
            )
            if pace.is_time():
                yield
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions)))
        if pace.is_time():
            yield
    return DeleteRecordsResponse(topics=tuple(topics))
