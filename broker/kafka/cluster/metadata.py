"""Handles Metadata (API key 3): returns brokers, topics and partition leaders from the broker's
committed image, and creates missing topics.

The brokers and leaders of one response come from one image, so they are consistent. Missing topics
are created if both the request and auto.create.topics.enable allow it. The response gives
UNKNOWN_TOPIC_OR_PARTITION or LEADER_NOT_AVAILABLE for a topic until this broker has replayed its
creation. A name that no topic may have gets INVALID_TOPIC_EXCEPTION.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import repeat

from quorate.broker.kafka.cluster.suspects import Suspects
from quorate.broker.kafka.shared.request_parts import in_pieces
from quorate.quorum.controller.topics.topic_names import what_is_wrong
from quorate.quorum.directory_ids import MIGRATING, is_online
from quorate.quorum.ids import NO_NODE, ZERO_UUID, Uuid
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import Broker, MetadataImage, Partition
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.metadata.pace import STEP_ENTRIES, Pace, in_order
from quorate.quorum.protocol.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_REQUESTED,
    TOPIC_OPERATIONS,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext

TOPIC_IDS_SINCE = 12
"""The first version in which a request may name topics by id (KIP-516)."""
LISTENER_ERROR_SINCE = 6
"""The first version with LISTENER_NOT_FOUND. Before, a leader without the listener counts as not
available."""
TOPIC_ENTRIES, PARTITION_ENTRIES = 4, 2
"""Weights of a topic and of a partition, in entries of a step (`Pace`)."""


Create = Callable[[list[str], Callable[[dict[str, ErrorCode]], None], RequestContext], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataHandler:
    """Handles Metadata on one listener of a broker, on the broker's event loop."""

    cluster_id: str
    listener: str
    image: Callable[[], MetadataImage]
    auto_create: Create | None
    """Creates topics with defaults, and calls back with the error of each; None if topics are not
    created automatically."""
    suspects: Suspects

    def handle(
        self, context: RequestContext, request: MetadataRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the named topics, or with all topics.

        The response waits while a broker is suspected, or for GRACE_MS if the connection has asked
        before (`suspects.py`). It also waits for the creation of missing topics. Each topic and
        partition has its own error. Before version TOPIC_IDS_SINCE, a request with topic ids gets
        INVALID_REQUEST for every topic. Return the steps that are left, or None.
        """
        if context.version < TOPIC_IDS_SINCE and any(map(by_id, request.topics or ())):
            return begun(context.respond_steps(not_by_id(request)))
        connection = context.connection
        returning, connection.asked_metadata = connection.asked_metadata, True
        if self.suspects.hold(
            lambda: context.run(self._handle(context, request)), returning=returning
        ):
            return None
        return begun(self._handle(context, request))

    def _handle(self, context: RequestContext, request: MetadataRequest) -> IncrementalWork[None]:
        image = self.image()
        wanted = yield from self._wanted(image, request, context.version)
        create = self.auto_create if request.allow_auto_topic_creation else None
        missing = [] if create is None else (yield from missing_topics(image, wanted))
        if create is None or not missing:
            yield from self._answer(context, wanted, {}, request)
            return

        def created(errors: dict[str, ErrorCode]) -> None:
            context.run(self._answer(context, wanted, errors, request))

        create(missing, created, context)

    def _wanted(
        self, image: MetadataImage, request: MetadataRequest, version: int
    ) -> IncrementalWork[Collection[MetadataRequestTopic]]:
        """Return the requested topics, in steps, each once, as in Kafka.

        All topics are requested by None, and in version 0 by an empty list.
        """
        if request.topics is None or (version == 0 and not request.topics):
            names = yield from in_order(image.topic_ids)
            every, pace = [], Pace()
            for name in names:
                every.append(MetadataRequestTopic(name=name))
                if pace.is_time():
                    yield
            return every
        if len(request.topics) <= 1:
            return request.topics
        wanted: dict[tuple[Uuid, str | None], MetadataRequestTopic] = {}
        for some in in_pieces(request.topics):
            if wanted:
                yield
            wanted.update({(each.topic_id, each.name): each for each in some})
        return wanted.values()

    def _answer(
        self,
        context: RequestContext,
        wanted: Iterable[MetadataRequestTopic],
        errors: dict[str, ErrorCode],
        request: MetadataRequest,
    ) -> IncrementalWork[None]:
        steps = self.describe(self.image(), wanted, errors, request, context.version)
        response = yield from built(context, steps, STEP_ENTRIES // PARTITION_ENTRIES)
        yield from context.respond_steps(response)

    def describe(
        self,
        image: MetadataImage,
        wanted: Iterable[MetadataRequestTopic],
        errors: dict[str, ErrorCode],
        request: MetadataRequest,
        version: int,
    ) -> IncrementalWork[MetadataResponse]:
        """Return the response, in steps. `errors` holds the error of each missing topic that the
        broker tried to create, by name.

        Only brokers with this listener are listed. The controller id is the lowest id of an
        unfenced one, because clients send admin requests there.
        """
        topics, pace = [], Pace()
        asked = request.include_topic_authorized_operations
        operations = TOPIC_OPERATIONS if asked else NOT_REQUESTED
        known = [image.brokers[each] for each in image.broker_ids()]
        known = [each for each in known if each.endpoint(self.listener)]
        alive = [each for each in known if not each.fenced]
        for each in wanted:
            topic = yield from self._topic(image, each, errors, operations, pace, version)
            topics.append(topic)
            if pace.is_time(TOPIC_ENTRIES):
                yield
        return MetadataResponse(
            brokers=tuple(self._broker(each) for each in known if self.suspects.listed(each)),
            cluster_id=self.cluster_id,
            controller_id=alive[0].id if alive else NO_NODE,
            topics=tuple(topics),
            cluster_authorized_operations=CLUSTER_OPERATIONS
            if request.include_cluster_authorized_operations
            else NOT_REQUESTED,
        )

    def _broker(self, broker: Broker) -> MetadataResponseBroker:
        endpoint = broker.endpoint(self.listener)
        assert endpoint is not None
        return MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )

    def _topic(
        self,
        image: MetadataImage,
        wanted: MetadataRequestTopic,
        errors: dict[str, ErrorCode],
        operations: int,
        pace: Pace,
        version: int,
    ) -> IncrementalWork[MetadataResponseTopic]:
        by_id = wanted.topic_id != ZERO_UUID
        topic = image.topics.get(wanted.topic_id) if by_id else image.topic(wanted.name or "")
        if topic is None:
            name = wanted.name or ""
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else why_missing(name)
            return MetadataResponseTopic(
                error_code=errors.get(name, error),
                name=wanted.name if not by_id else None,
                topic_id=wanted.topic_id,
                is_internal=not by_id and name in INTERNAL_TOPICS,
                partitions=(),
                topic_authorized_operations=NOT_REQUESTED if by_id else operations,
            )
        partitions = []
        for index in topic.partition_ids():
            found = describe_partition(image, index, topic.partitions[index], self.listener)
            if version < LISTENER_ERROR_SINCE and found.error_code == ErrorCode.LISTENER_NOT_FOUND:
                found = replace(found, error_code=ErrorCode.LEADER_NOT_AVAILABLE)
            partitions.append(found)
            if pace.is_time(PARTITION_ENTRIES):
                yield
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=tuple(partitions),
            topic_authorized_operations=operations,
        )


def why_missing(name: str) -> ErrorCode:
    """Return the error of a topic that does not exist. A client that learns that no topic may have
    this name does not ask again."""
    illegal = what_is_wrong(name) is not None
    return ErrorCode.INVALID_TOPIC_EXCEPTION if illegal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def missing_topics(
    image: MetadataImage, wanted: Iterable[MetadataRequestTopic]
) -> IncrementalWork[list[str]]:
    """Return the names in `wanted` that no topic has, in steps. Topics named by id are skipped."""
    missing, pace = [], Pace()
    for each in wanted:
        name = each.name
        if each.topic_id == ZERO_UUID and name is not None and not image.topic(name):
            missing.append(name)
        if pace.is_time():
            yield
    return missing


def built(
    context: RequestContext, steps: IncrementalWork[MetadataResponse], elements: int
) -> IncrementalWork[MetadataResponse]:
    """Run `steps` and return their result. Count `elements` more elements of the response for the
    memory budget after each step."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            response: MetadataResponse = end.value
            return response
        context.count_elements(elements)
        yield


def by_id(wanted: MetadataRequestTopic) -> bool:
    """Return True if the request names this topic by its id."""
    return wanted.name is None or wanted.topic_id != ZERO_UUID


def not_by_id(request: MetadataRequest) -> MetadataResponse:
    """Return the response that refuses topic ids with INVALID_REQUEST.

    Versions 10 and 11 have a field for topic ids, but do not allow them in a request."""
    return MetadataResponse(
        brokers=(),
        topics=tuple(
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=each.name or "",
                topic_id=each.topic_id,
                partitions=(),
            )
            for each in request.topics or ()
        ),
    )


def describe_partition(
    image: MetadataImage, index: int, partition: Partition, listener: str
) -> MetadataResponsePartition:
    """Return the description of a partition for clients of `listener`.

    A partition whose leader is missing or fenced gets LEADER_NOT_AVAILABLE, and one whose leader
    lacks the listener gets LISTENER_NOT_FOUND. Both get the leader id -1."""
    leader = image.brokers.get(partition.leader)
    error = ErrorCode.NONE
    if leader is None or leader.fenced:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif leader.endpoint(listener) is None:
        error = ErrorCode.LISTENER_NOT_FOUND
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=partition.leader if error is ErrorCode.NONE else NO_NODE,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline(image, partition),
    )


def offline(image: MetadataImage, partition: Partition) -> tuple[int, ...]:
    """Return the replicas on brokers that are fenced or not registered, and those whose log
    directory is offline."""
    brokers = image.brokers
    recorded = partition.directories
    directories = recorded if len(recorded) == len(partition.replicas) else repeat(MIGRATING)
    return tuple(
        replica
        for replica, directory in zip(partition.replicas, directories, strict=False)
        if (broker := brokers.get(replica)) is None
        or broker.fenced
        or not (directory in broker.log_dirs or is_online(directory, broker.log_dirs))
    )
