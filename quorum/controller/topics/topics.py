"""CreateTopics and DeleteTopics, with the checks in Kafka's order (ReplicationControlManager).

The records of one request are one atomic batch. An error of one topic does not fail the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quorate.quorum.clipped import clipped
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import DecisionSteps
from quorate.quorum.controller.state.result import (
    MAX_RECORDS_PER_USER_OP,
    ControllerError,
    RequestRefused,
    Result,
    TooManyRecords,
    check_items,
    check_room,
)
from quorate.quorum.controller.topics.assignments import manual_topic, new_partitions
from quorate.quorum.controller.topics.placement import Placer
from quorate.quorum.controller.topics.topic_configs import (
    check_topic_configs,
    described_configs,
    topic_config_record,
)
from quorate.quorum.controller.topics.topic_names import check_new_name
from quorate.quorum.ids import METADATA_TOPIC, ZERO_UUID, Uuid, random_uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Topic
from quorate.quorum.metadata.records import MetadataRecord, RemoveTopicRecord, TopicRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

USE_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class NewTopic:
    """The records of one topic to create, and the facts that the response repeats."""

    topic_id: Uuid
    configs: dict[str, str]
    records: list[MetadataRecord]
    partitions: int
    replication_factor: int


def create_topics(context: Context, request: CreateTopicsRequest) -> DecisionSteps:
    """Create the topics of one request, in steps.

    A topic that is named twice fails with INVALID_REQUEST. A request that would write more than
    MAX_RECORDS_PER_USER_OP records fails as a whole with POLICY_VIOLATION. A request with
    `validate_only` gets its response but writes nothing.
    """
    records: list[MetadataRecord] = []
    results: list[CreatableTopicResult] = []
    times = Counter(topic.name for topic in request.topics)
    placer = Placer.of(context.image, context.index)
    defaults = described_configs(context, {})
    try:
        check_items(len(request.topics))
        for topic in request.topics:
            if times[topic.name] > 1:
                continue
            try:
                check_creatable(context, topic.name)
                made = yield from create_topic(context, topic, len(records), placer)
            except RequestRefused as refused:
                results.append(failed(topic.name, refused))
            else:
                records += made.records
                configs = described_configs(context, made.configs) if made.configs else defaults
                results.append(created(topic.name, made, configs))
    except TooManyRecords as refused:
        all_failed = tuple(failed(name, refused) for name in times)
        return Result(response=CreateTopicsResponse(topics=all_failed))
    twice = RequestRefused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += (failed(name, twice) for name, count in times.items() if count > 1)
    response = CreateTopicsResponse(topics=tuple(results))
    return Result(() if request.validate_only else records, response)


def check_creatable(context: Context, name: str) -> None:
    """Raise RequestRefused if the name is the metadata topic's, exists, is not valid, or collides
    with another name."""
    if name == METADATA_TOPIC:
        raise RequestRefused(
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {METADATA_TOPIC} is prohibited.",
        )
    if name in context.image.topic_ids:
        raise RequestRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_new_name(context.index, name)


def create_topic(
    context: Context, topic: CreatableTopic, before: int, placer: Placer
) -> IncrementalWork[NewTopic]:
    """Return the records of one topic, with a pause after each STEP_RECORDS partitions. `before` is
    the number of records that the same request already writes. Raise RequestRefused or
    TooManyRecords."""
    configs = topic_configs(topic)
    before += 1 + len(configs)
    if topic.assignments:
        check_defaults_asked(topic)
        check_room(before + len(topic.assignments))
        assignments = manual_topic(context, topic.assignments)
        placer.count(assignments)
    else:
        assignments = yield from placed(context, topic, before, placer)
    context.charge(len(assignments))
    topic_id = random_uuid(context.random)
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += (topic_config_record(topic.name, key, value) for key, value in configs.items())
    records += yield from new_partitions(context, topic_id, 0, assignments, Cause.TOPIC_CREATED)
    return NewTopic(topic_id, configs, records, len(assignments), len(assignments[0]))


def topic_configs(topic: CreatableTopic) -> dict[str, str]:
    """Return the topic's config overrides. Raise RequestRefused if one is null, unknown or not
    valid."""
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise RequestRefused(
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: " + clipped(",".join(missing)),
        )
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    check_topic_configs(configs)
    return configs


def check_defaults_asked(topic: CreatableTopic) -> None:
    """Raise RequestRefused unless the partition count and replication factor are -1, which a manual
    assignment requires."""
    for name, value in (
        ("replication factor", topic.replication_factor),
        ("numPartitions", topic.num_partitions),
    ):
        if value != USE_DEFAULT:
            raise RequestRefused(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )


def placed(
    context: Context, topic: CreatableTopic, before: int, placer: Placer
) -> IncrementalWork[list[tuple[int, ...]]]:
    """Return the replicas of each partition, chosen by the placer, with pauses. A count or factor
    of -1 means the default. Raise RequestRefused or TooManyRecords."""
    if topic.replication_factor < USE_DEFAULT or topic.replication_factor == 0:
        raise RequestRefused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < USE_DEFAULT or topic.num_partitions == 0:
        raise RequestRefused(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    settings = context.settings
    partitions, factor = topic.num_partitions, topic.replication_factor
    if partitions == USE_DEFAULT:
        partitions = settings.default_partitions
    if factor == USE_DEFAULT:
        factor = settings.default_replication_factor
    check_room(before + partitions)
    try:
        return (yield from placer.place(partitions, factor, context.random))
    except RequestRefused as refused:
        raise RequestRefused(
            refused.error,
            f"Unable to replicate the partition {factor} time(s): {refused.message}",
        ) from None


def created(
    name: str, made: NewTopic, configs: tuple[CreatableTopicConfigs, ...]
) -> CreatableTopicResult:
    """Return the response for a topic that is created."""
    return CreatableTopicResult(
        name=name,
        topic_id=made.topic_id,
        error_code=ErrorCode.NONE,
        num_partitions=made.partitions,
        replication_factor=made.replication_factor,
        configs=configs,
    )


def failed(name: str, refused: ControllerError) -> CreatableTopicResult:
    """Return the error response of one topic."""
    return CreatableTopicResult(
        name=name, error_code=refused.error, error_message=refused.message or None
    )


def delete_topics(context: Context, request: DeleteTopicsRequest) -> Result:
    """Delete topics by name or by id; old versions of the request have only names.

    A topic that the request names twice is not deleted, and its error is returned once. The whole
    request fails with TOPIC_DELETION_DISABLED, or with POLICY_VIOLATION if it names more than
    MAX_RECORDS_PER_USER_OP topics.
    """
    asked = request.topics or tuple(DeleteTopicState(name=name) for name in request.topic_names)
    whole = why_none_is_deleted(context, len(asked))
    if whole is not None:
        none = tuple(not_deleted(state, whole) for state in asked)
        return Result(response=DeleteTopicsResponse(responses=none))
    removed: list[Uuid] = []
    responses = []
    times = Counter(asked)
    for state, count in times.items():
        try:
            topic = topic_to_delete(context, state, count)
            if DeleteTopicState(topic_id=topic.id) in times and state.name is not None:
                raise RequestRefused(
                    ErrorCode.INVALID_REQUEST,
                    "The provided topic name maps to an ID that was already supplied.",
                )
        except RequestRefused as refused:
            responses.append(not_deleted(state, refused))
            continue
        if DeleteTopicState(name=topic.name) in times and state.name is None:
            continue  # the request also names it; the error is answered there
        try:
            context.charge(len(topic.partitions))
        except RequestRefused as refused:
            responses.append(not_deleted(state, refused))
            continue
        removed.append(topic.id)
        responses.append(DeletableTopicResult(name=topic.name, topic_id=topic.id))
    records = tuple(RemoveTopicRecord(topic_id=topic_id) for topic_id in removed)
    return Result(records, DeleteTopicsResponse(responses=tuple(responses)))


def why_none_is_deleted(context: Context, count: int) -> RequestRefused | None:
    """Return the error that fails the whole request, or None. `count` is the number of topics in
    it."""
    if not context.settings.topic_deletion:
        return RequestRefused(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    if count > MAX_RECORDS_PER_USER_OP:
        return RequestRefused(
            ErrorCode.POLICY_VIOLATION,
            f"At most {MAX_RECORDS_PER_USER_OP} topics can be deleted at once.",
        )
    return None


def not_deleted(state: DeleteTopicState, refused: RequestRefused) -> DeletableTopicResult:
    """Return the error response of one topic."""
    return DeletableTopicResult(
        name=state.name,
        topic_id=state.topic_id,
        error_code=refused.error,
        error_message=refused.message,
    )


def topic_to_delete(context: Context, state: DeleteTopicState, times: int) -> Topic:
    """Return the topic that `state` names. `times` is the number of its occurrences in the request.
    Raise RequestRefused if it is ambiguous, repeated or unknown."""
    image, by_id = context.image, state.topic_id != ZERO_UUID
    if by_id and state.name is not None:
        raise RequestRefused(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if not by_id and state.name is None:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if times > 1:
        what = "id" if by_id else "name"
        raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
    topic = image.topics.get(state.topic_id) if by_id else image.topic(state.name or "")
    if topic is None and by_id:
        raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if topic is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    return topic
