"""Handles DescribeProducers (API key 61): the idempotent producers of partitions (KIP-664)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from quorate.broker.kafka.shared.replicas import Replicas
from quorate.broker.kafka.shared.request_parts import emptied, in_pieces
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.controller.topics.topic_names import what_is_wrong
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

ENTRIES = 5
"""The number of entries that one described partition counts in a `Pace`, which divides work into
steps. Each producer of the partition counts one more."""
NUMBERS_PER_ENTRY = 4
"""The number of partition numbers in a request that count as one entry in a `Pace`."""
MAX_WAITS = 1000
"""Maximum number of requests that wait for the producer states of one partition. Produce requests
count, too. A request of a closed connection counts until the load ends."""
TOO_MANY_WAIT = "too many requests wait until the producer states of the partition are loaded"


@dataclass(frozen=True, slots=True)
class DescribeProducersHandler:
    """Handles DescribeProducers on one broker, on the broker's event loop."""

    replicas: Replicas

    def handle(
        self, context: RequestContext, request: DescribeProducersRequest
    ) -> IncrementalWork[None] | None:
        """Send the producers of each named partition. Return the steps that are left, which the
        caller runs, or None.

        If producer states must be loaded, the response follows when the last of them is loaded.
        The result is None then, too, so None does not mean that the response is sent. A partition
        that the request names more than once is described once. Any replica answers, also a
        follower, as in Kafka. Errors of a partition:

        - INVALID_TOPIC_EXCEPTION if the topic's name is not legal.
        - The error of `PartitionRegistry.why_missing` if the replica is not open on this broker.
        - REQUEST_TIMED_OUT if its states are not loaded and MAX_WAITS requests wait for them
          already.
        - The error of the load if the states cannot be read from the log.
        - NOT_LEADER_OR_FOLLOWER if the replica's role changed during the load.
        """
        return begun(self._describe_producers(context, request))

    def _describe_producers(
        self, context: RequestContext, request: DescribeProducersRequest
    ) -> IncrementalWork[None]:
        asked: dict[str, dict[int, None]] = {}
        pace = Pace()
        for topic in request.topics:
            if pace.is_time():
                yield
            wanted = asked.setdefault(topic.name, {})
            for some in in_pieces(topic.partition_indexes):
                if pace.is_time(len(some) // NUMBERS_PER_ENTRY):
                    yield
                wanted.update(dict.fromkeys(some))
        unloaded: list[HostedPartition] = []
        errors: dict[Key, KafkaError] = {}
        for name, indexes in asked.items():
            for index in indexes:
                if pace.is_time():
                    yield
                hosted = self.replicas.registry.find(name, ZERO_UUID, index)
                if hosted is None or hosted.partition.producers.loaded is not None:
                    continue
                if hosted.producer_waits < MAX_WAITS:
                    unloaded.append(hosted)
                else:
                    errors[hosted.key] = KafkaError(ErrorCode.REQUEST_TIMED_OUT, TOO_MANY_WAIT)
        if unloaded:
            self._load_first(context, asked, unloaded, errors)
        else:
            yield from self._respond(context, asked, errors)

    def _load_first(
        self,
        context: RequestContext,
        asked: dict[str, dict[int, None]],
        unloaded: list[HostedPartition],
        errors: dict[Key, KafkaError],
    ) -> None:
        """Respond when the producer states of `unloaded` are loaded. `errors` holds those of other
        partitions."""
        left = len(unloaded)

        def loaded(hosted: HostedPartition, error: KafkaError | None) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                errors[hosted.key] = error
            if not left:
                context.run(self._respond(context, asked, errors))

        for hosted in unloaded:
            hosted.await_producers(context.callback(partial(loaded, hosted)))
            self.replicas.load_producers(hosted)

    def _respond(
        self,
        context: RequestContext,
        asked: dict[str, dict[int, None]],
        errors: dict[Key, KafkaError],
    ) -> IncrementalWork[None]:
        topics, pace = [], Pace()
        for name, indexes in asked.items():
            partitions = []
            for index in indexes:
                partition = self._producers(name, index, errors)
                partitions.append(partition)
                if pace.is_time(ENTRIES + len(partition.active_producers)):
                    yield
            topics.append(TopicResponse(name=name, partitions=tuple(partitions)))
            if pace.is_time(ENTRIES):
                yield
        yield from emptied(asked)
        yield from context.respond_steps(DescribeProducersResponse(topics=tuple(topics)))

    def _producers(
        self, topic: str, partition_id: int, errors: dict[Key, KafkaError]
    ) -> PartitionResponse:
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
        states = hosted.partition.producers.loaded
        if states is None:  # the load failed, or the replica's role has changed meanwhile
            refused = errors.get(hosted.key) or KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return PartitionResponse(
                partition_index=partition_id,
                error_code=refused.code,
                error_message=refused.message,
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
                for producer_id, producer in states.producers.items()
            ),
        )
