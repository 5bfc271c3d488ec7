"""OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47).

Since v10 clients name topics by id (KIP-848); groups keep offsets under names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.shard import Shard
from quorate.broker.kafka.gathering import Gathering
from quorate.broker.kafka.group_requests import ask, check_group_id
from quorate.broker.kafka.parts import divided, is_short, joined
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas import group_offsets as schemas
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.steps import Steps, begun

TOPIC_IDS_SINCE = 10
SEVERAL_GROUPS_SINCE = 8
TOP_LEVEL_ERROR_SINCE = 2


@dataclass(frozen=True, slots=True)
class GroupOffsetsHandler:
    coordinator: GroupCoordinator
    image: Callable[[], MetadataImage]

    # --- commit

    def commit(
        self, context: RequestContext, request: schemas.OffsetCommitRequest
    ) -> Steps[None] | None:
        image = self.image()
        by_id = context.version >= TOPIC_IDS_SINCE
        if by_id:
            named = (
                dataclasses.replace(topic, name=name_of(image, topic.topic_id))
                for topic in request.topics
            )
            request = dataclasses.replace(request, topics=tuple(named))
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        def refuse(topic: schemas.OffsetCommitRequestTopic, partition_id: int) -> ErrorCode:
            found = image.topic(topic.name)
            if found is None:
                return unknown
            known = partition_id in found.partitions
            return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        def commit(
            part: schemas.OffsetCommitRequest, done: Callable[[schemas.OffsetCommitResponse], None]
        ) -> None:
            ask(
                self.coordinator,
                part.group_id,
                lambda shard: shard.commit(part, context.version, refuse),
                done,
                lambda error: not_committed(part, error),
            )

        if is_short(request.topics, "partitions"):
            commit(request, context.respond)
            return None
        return begun(self._commit_in_parts(context, request, commit))

    def _commit_in_parts(
        self,
        context: RequestContext,
        request: schemas.OffsetCommitRequest,
        commit: Callable[
            [schemas.OffsetCommitRequest, Callable[[schemas.OffsetCommitResponse], None]], None
        ],
    ) -> Steps[None]:
        def respond(answers: Sequence[schemas.OffsetCommitResponse]) -> None:
            topics = (topic for answer in answers for topic in answer.topics)
            response = schemas.OffsetCommitResponse(
                topics=joined(topics, "partitions", lambda each: (each.name, each.topic_id))
            )
            context.run(context.respond_steps(response))

        parts = list(divided(request.topics, "partitions"))
        gathering = Gathering(len(parts), context.callback(respond))
        for index, part in enumerate(parts):
            yield
            commit(dataclasses.replace(request, topics=part), gathering.slot(index))

    # --- fetch

    def fetch(
        self, context: RequestContext, request: schemas.OffsetFetchRequest
    ) -> Steps[None] | None:
        return begun(self._fetch_all(context, request))

    def _fetch_all(
        self, context: RequestContext, request: schemas.OffsetFetchRequest
    ) -> Steps[None]:
        if context.version >= SEVERAL_GROUPS_SINCE:

            def respond(groups: Sequence[schemas.OffsetFetchResponseGroup]) -> None:
                response = schemas.OffsetFetchResponse(groups=tuple(groups))
                context.run(context.respond_steps(response))

            gathering = Gathering(len(request.groups), context.callback(respond))
            by_id = context.version >= TOPIC_IDS_SINCE
            for index, group in enumerate(request.groups):
                if index:
                    yield
                yield from self._fetch_one(group, gathering.slot(index), by_id)
            return
        topics = request.topics
        group = schemas.OffsetFetchRequestGroup(
            group_id=request.group_id,
            topics=None
            if topics is None
            else tuple(
                schemas.OffsetFetchRequestTopics(
                    name=each.name, partition_indexes=each.partition_indexes
                )
                for each in topics
            ),
        )

        def answer(found: schemas.OffsetFetchResponseGroup) -> None:
            response = of_one_group(found, group, context.version)
            context.run(context.respond_steps(response))

        yield from self._fetch_one(group, answer, by_id=False)

    def _fetch_one(
        self,
        wanted: schemas.OffsetFetchRequestGroup,
        done: Callable[[schemas.OffsetFetchResponseGroup], None],
        by_id: bool,
    ) -> Steps[None]:
        topics = wanted.topics
        if topics is None or is_short(topics, "partition_indexes"):
            self._fetch(wanted, done, by_id)
            return

        def join(groups: Sequence[schemas.OffsetFetchResponseGroup]) -> None:
            refused = next((each for each in groups if each.error_code), None)
            found = (topic for group in groups for topic in group.topics)
            whole = joined(found, "partitions", lambda each: (each.name, each.topic_id))
            done(refused or dataclasses.replace(groups[0], topics=whole))

        parts = list(divided(topics, "partition_indexes"))
        gathering = Gathering(len(parts), join)
        for index, part in enumerate(parts):
            yield
            self._fetch(dataclasses.replace(wanted, topics=part), gathering.slot(index), by_id)

    def _fetch(
        self,
        wanted: schemas.OffsetFetchRequestGroup,
        done: Callable[[schemas.OffsetFetchResponseGroup], None],
        by_id: bool,
    ) -> None:
        image = self.image()
        topics = wanted.topics
        unknown: Sequence[schemas.OffsetFetchRequestTopics] = ()
        if by_id and topics is not None:
            named = [
                dataclasses.replace(each, name=name_of(image, each.topic_id)) for each in topics
            ]
            unknown = [each for each in named if not each.name]
            wanted = dataclasses.replace(wanted, topics=tuple(each for each in named if each.name))

        def answer(group: schemas.OffsetFetchResponseGroup) -> None:
            if by_id and not group.error_code:
                found = (
                    dataclasses.replace(each, topic_id=image.topic_id(each.name))
                    for each in group.topics
                )
                missing = (not_fetched(each, ErrorCode.UNKNOWN_TOPIC_ID) for each in unknown)
                group = dataclasses.replace(group, topics=(*found, *missing))
            done(group)

        ask(
            self.coordinator,
            wanted.group_id,
            partial(Shard.fetch, wanted=wanted),
            answer,
            lambda error: schemas.OffsetFetchResponseGroup(
                group_id=wanted.group_id, error_code=error
            ),
        )

    # --- delete

    def delete(
        self, context: RequestContext, request: schemas.OffsetDeleteRequest
    ) -> Steps[None] | None:
        image = self.image()

        def refuse(name: str, partition_id: int) -> ErrorCode:
            topic = image.topic(name)
            known = topic is not None and partition_id in topic.partitions
            return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        def delete(
            part: schemas.OffsetDeleteRequest, done: Callable[[schemas.OffsetDeleteResponse], None]
        ) -> None:
            def work(shard: Shard) -> schemas.OffsetDeleteResponse:
                check_group_id(part.group_id)
                return shard.delete_offsets(part, refuse)

            ask(self.coordinator, part.group_id, work, done, not_deleted)

        if is_short(request.topics, "partitions"):
            delete(request, context.respond)
            return None
        return begun(self._delete_in_parts(context, request, delete))

    def _delete_in_parts(
        self,
        context: RequestContext,
        request: schemas.OffsetDeleteRequest,
        delete: Callable[
            [schemas.OffsetDeleteRequest, Callable[[schemas.OffsetDeleteResponse], None]], None
        ],
    ) -> Steps[None]:
        def respond(answers: Sequence[schemas.OffsetDeleteResponse]) -> None:
            refused = next((each for each in answers if each.error_code), None)
            topics = (topic for answer in answers for topic in answer.topics)
            whole = joined(topics, "partitions", lambda each: each.name)
            response = refused or dataclasses.replace(answers[0], topics=whole)
            context.run(context.respond_steps(response))

        parts = list(divided(request.topics, "partitions"))
        gathering = Gathering(len(parts), context.callback(respond))
        for index, part in enumerate(parts):
            yield
            delete(dataclasses.replace(request, topics=part), gathering.slot(index))


def not_deleted(error: ErrorCode) -> schemas.OffsetDeleteResponse:
    return schemas.OffsetDeleteResponse(error_code=error, throttle_time_ms=0, topics=())


def name_of(image: MetadataImage, topic_id: Uuid) -> str:
    """Empty when there is no such topic."""
    topic = image.topics.get(topic_id)
    return "" if topic is None else topic.name


def not_committed(
    request: schemas.OffsetCommitRequest, error: ErrorCode
) -> schemas.OffsetCommitResponse:
    return schemas.OffsetCommitResponse(
        topics=tuple(
            schemas.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    schemas.OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def not_fetched(
    topic: schemas.OffsetFetchRequestTopics, error: ErrorCode
) -> schemas.OffsetFetchResponseTopics:
    return schemas.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            schemas.OffsetFetchResponsePartitions(
                partition_index=each, committed_offset=-1, metadata="", error_code=error
            )
            for each in topic.partition_indexes
        ),
    )


def of_one_group(
    group: schemas.OffsetFetchResponseGroup,
    wanted: schemas.OffsetFetchRequestGroup,
    version: int,
) -> schemas.OffsetFetchResponse:
    """The form of versions before 8; before 2, every partition bears the error of the whole."""
    topics = group.topics
    if group.error_code and version < TOP_LEVEL_ERROR_SINCE:
        error = ErrorCode.of(group.error_code)
        topics = tuple(not_fetched(each, error) for each in wanted.topics or ())
    return schemas.OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            schemas.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    schemas.OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in topics
        ),
    )
