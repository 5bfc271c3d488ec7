"""Produce (0): batches to the replica manager as they came, results back when `acks` is satisfied.

Batches are not decoded here: the replica manager checks and places them. With acks=0 nobody waits
for an answer, so an error closes the connection (the client then looks the leader up anew).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.broker.kafka.replicas import MOVED, Replicas, TopicDirectory
from quorate.broker.replication.appends import Append, AppendResult
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.hot import (
    ProducedPartition,
    ProducePartition,
    build_produce_response,
    parse_produce_request,
)
from quorate.quorum.rpc.kafka.server import RequestContext

NO_ACKS = 0


@dataclass(frozen=True, slots=True)
class ProduceHandler:
    replicas: Replicas
    topics: TopicDirectory

    def handle(self, context: RequestContext, body: memoryview) -> None:
        """Raw: the body after the header."""
        request = parse_produce_request(body, context.version)
        results: list[ProducedPartition | None] = [None] * len(request.partitions)
        appends: list[Append] = []
        places: list[int] = []
        for place, wanted in enumerate(request.partitions):
            topic_id = self.topics.topic_id(wanted.topic, wanted.topic_id)
            if request.transactional_id is not None:
                results[place] = failed(wanted, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            elif topic_id is None:
                results[place] = failed(wanted, self.topics.missing(wanted.topic_id))
            elif not wanted.records:
                results[place] = failed(wanted, ErrorCode.INVALID_RECORD)
            else:
                appends.append(Append((topic_id, wanted.partition), wanted.records))
                places.append(place)

        def done(appended: Sequence[AppendResult]) -> None:
            for place, append, result in zip(places, appends, appended, strict=True):
                results[place] = self._result(request.partitions[place], append, result)
            self._respond(context, [each for each in results if each is not None], request.acks)

        if appends:
            self.replicas.append(appends, request.acks, request.timeout_ms, done)
        else:
            done(())

    def _result(
        self, wanted: ProducePartition, append: Append, result: AppendResult
    ) -> ProducedPartition:
        return ProducedPartition(
            wanted.topic,
            wanted.topic_id,
            wanted.partition,
            result.error,
            result.base_offset,
            result.append_time_ms,
            result.start_offset,
            result.message,
            (),
            self.topics.leader(append.key) if result.error in MOVED else None,
        )

    def _respond(
        self, context: RequestContext, results: Sequence[ProducedPartition], acks: int
    ) -> None:
        if acks != NO_ACKS:
            leaders = [each.leader for each in results if each.leader is not None]
            endpoints = self.topics.endpoints(leaders) if leaders else ()
            context.respond_raw(
                build_produce_response(context.version, results, endpoints=endpoints)
            )
            return
        error = next((each.error for each in results if each.error), ErrorCode.NONE)
        if error:
            context.connection.refuse(f"Produce with acks=0 failed: {ErrorCode.of(error).name}")
        context.no_response()


def failed(wanted: ProducePartition, error: ErrorCode) -> ProducedPartition:
    return ProducedPartition(wanted.topic, wanted.topic_id, wanted.partition, error)
