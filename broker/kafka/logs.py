"""What admin clients ask about the logs on this broker: DeleteRecords (21), DescribeLogDirs (35),
DescribeProducers (61). And DescribeClientQuotas (48), whose answer is that there are none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from quorate.broker.kafka.client_quotas import check_filter
from quorate.broker.kafka.replicas import PartitionRegistry, Replicas
from quorate.broker.kafka.request_parts import all_parts, emptied, in_pieces
from quorate.broker.kafka.result_collector import ResultCollector
from quorate.broker.replication.damage import unreadable
from quorate.broker.replication.delete_records import Deleted, ToDelete
from quorate.quorum.controller.topic_names import what_is_wrong
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.log.errors import CorruptLog
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.metadata.steps import STEP_ENTRIES, Pace, in_order
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from quorate.quorum.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from quorate.quorum.protocol.schemas.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from quorate.quorum.protocol.schemas.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.steps import Steps, begun

ENTRIES = 5
"""The weight of a partition in `Pace`."""
NUMBERS_PER_ENTRY = 4
"""Numbers of partitions that weigh as much as one entry."""
INTERNAL_TOPIC_REFUSED = Deleted(-1, ErrorCode.INVALID_TOPIC_EXCEPTION)


@dataclass(frozen=True, slots=True)
class LogsHandler:
    replicas: Replicas
    log_dir: str

    def delete_records(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> Steps[None] | None:
        return begun(self._delete_records(context, request))

    def _delete_records(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> Steps[None]:
        """Of internal topics nothing is deleted: their coordinators own them."""

        def respond(answers: Sequence[Sequence[Deleted]]) -> None:
            context.run(self._respond_deleted(context, request, answers))

        parts = yield from all_parts(request.topics, "partitions")
        collector = ResultCollector(len(parts), respond)
        for index, part in enumerate(parts):
            if index:
                yield
            self._delete(part, max(0, request.timeout_ms), collector.slot(index))

    def _respond_deleted(
        self,
        context: RequestContext,
        request: DeleteRecordsRequest,
        answers: Sequence[Sequence[Deleted]],
    ) -> Steps[None]:
        response = yield from deletion_response(request, chain.from_iterable(answers))
        yield from context.respond_steps(response)

    def _delete(
        self,
        topics: Sequence[DeleteRecordsTopic],
        timeout_ms: int,
        done: Callable[[Sequence[Deleted]], None],
    ) -> None:
        asked = [
            ToDelete(topic.name, each.partition_index, each.offset)
            for topic in topics
            for each in topic.partitions
        ]
        allowed = [each for each in asked if each.topic not in INTERNAL_TOPICS]

        def answer(results: Sequence[Deleted]) -> None:
            found = iter(results)
            done(
                [
                    INTERNAL_TOPIC_REFUSED if each.topic in INTERNAL_TOPICS else next(found)
                    for each in asked
                ]
            )

        self.replicas.delete_records(allowed, timeout_ms, answer)

    def describe_log_dirs(
        self, context: RequestContext, request: DescribeLogDirsRequest
    ) -> Steps[None] | None:
        return begun(self._describe_log_dirs(context, request))

    def _describe_log_dirs(
        self, context: RequestContext, request: DescribeLogDirsRequest
    ) -> Steps[None]:
        """There is one directory. The lag is that of a copy behind the log it will replace, and
        nothing is copied between directories."""
        registry, pace = self.replicas.registry, Pace()
        if request.topics is None:
            places = {(hosted.topic, hosted.key[1]) for hosted in registry}
        else:
            places = yield from hosted_places(registry, request.topics)
        topics: dict[str, list[DescribeLogDirsPartition]] = {}
        for name, partition_id in (yield from in_order(places)):
            if pace.is_time(ENTRIES):
                context.builds(STEP_ENTRIES // ENTRIES)
                yield
            hosted = registry.find(name, ZERO_UUID, partition_id)
            if hosted is None:
                continue
            topics.setdefault(hosted.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=hosted.key[1],
                    partition_size=hosted.log.size_bytes,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
        total_bytes, usable_bytes = volume_bytes(self.log_dir)
        directory = DescribeLogDirsResult(
            log_dir=self.log_dir,
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
            topics=tuple(
                DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
                for name, partitions in topics.items()
            ),
        )
        yield from context.respond_steps(DescribeLogDirsResponse(results=(directory,)))

    def describe_producers(
        self, context: RequestContext, request: DescribeProducersRequest
    ) -> Steps[None] | None:
        return begun(self._describe_producers(context, request))

    def _describe_producers(
        self, context: RequestContext, request: DescribeProducersRequest
    ) -> Steps[None]:
        """A topic or partition that is named twice is described once."""
        asked: dict[str, dict[int, None]] = {}
        topics, pace = [], Pace()
        for topic in request.topics:
            if pace.is_time():
                yield
            wanted = asked.setdefault(topic.name, {})
            for some in in_pieces(topic.partition_indexes):
                if pace.is_time(len(some) // NUMBERS_PER_ENTRY):
                    yield
                wanted.update(dict.fromkeys(some))
        for name, indexes in asked.items():
            partitions = []
            for index in indexes:
                partition = self._producers(name, index)
                partitions.append(partition)
                if pace.is_time(ENTRIES + len(partition.active_producers)):
                    yield
            topics.append(TopicResponse(name=name, partitions=tuple(partitions)))
            if pace.is_time(ENTRIES):
                yield
        yield from emptied(asked)
        yield from context.respond_steps(DescribeProducersResponse(topics=tuple(topics)))

    def _producers(self, topic: str, partition_id: int) -> PartitionResponse:
        """Of any replica, also of a follower's, as in Kafka."""
        registry = self.replicas.registry
        problem = what_is_wrong(topic)
        hosted = registry.find(topic, ZERO_UUID, partition_id)
        if problem is not None or hosted is None:
            error = registry.why_missing(topic, ZERO_UUID, partition_id)
            if problem is not None:
                error = ErrorCode.INVALID_TOPIC_EXCEPTION
            return PartitionResponse(
                partition_index=partition_id,
                error_code=error,
                error_message=problem or error.message,
            )
        try:
            producers = hosted.partition.producers.producers
        except CorruptLog as damage:  # they are read from the log at their first use
            return PartitionResponse(
                partition_index=partition_id,
                error_code=unreadable(hosted, damage),
                error_message=str(damage),
            )
        return PartitionResponse(
            partition_index=partition_id,
            active_producers=tuple(
                ProducerState(
                    producer_id=producer_id,
                    producer_epoch=producer.epoch,
                    last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
                    last_timestamp=producer.last_timestamp_ms,
                )
                for producer_id, producer in producers.items()
            ),
        )


def hosted_places(
    registry: PartitionRegistry, topics: Iterable[DescribableLogDirTopic]
) -> Steps[set[tuple[str, int]]]:
    """Return the topics and partitions that a request names and that are here, in steps."""
    places: set[tuple[str, int]] = set()
    pace = Pace()
    for topic in topics:
        if pace.is_time():
            yield
        for each in topic.partitions:
            if registry.find(topic.topic, ZERO_UUID, each) is not None:
                places.add((topic.topic, each))
            if pace.is_time():
                yield
    return places


def volume_bytes(log_dir: str) -> tuple[int, int]:
    """Total and usable bytes of the volume (KIP-827); -1 when nobody can say."""
    try:
        usage = shutil.disk_usage(log_dir)
    except OSError:
        return -1, -1
    return usage.total, usage.free


def deletion_response(
    request: DeleteRecordsRequest, results: Iterable[Deleted]
) -> Steps[DeleteRecordsResponse]:
    """Return the response in steps. `results` are in the order of the request's partitions."""
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


def no_quotas(context: RequestContext, request: DescribeClientQuotasRequest) -> None:
    try:
        check_filter(request)
    except KafkaError as error:
        context.respond(
            DescribeClientQuotasResponse(
                error_code=error.code, error_message=error.message, entries=None
            )
        )
    else:
        context.respond(DescribeClientQuotasResponse(entries=()))
