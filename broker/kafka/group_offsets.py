"""OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47).

Since v10 clients name topics by id (KIP-848); groups keep offsets under names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.records import OffsetValue
from quorate.broker.groups.shard import Shard, fetched
from quorate.broker.kafka.group_requests import ask, check_group_id
from quorate.broker.kafka.offset_fetch_v7 import as_group, not_fetched, of_one_group
from quorate.broker.kafka.request_parts import all_parts, is_short, joined
from quorate.broker.kafka.result_collector import ResultCollector
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.steps import Pace, in_order
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.steps import Steps, begun

TOPIC_IDS_SINCE = 10
SEVERAL_GROUPS_SINCE = 8

T = TypeVar("T")
Held = Mapping[tuple[str, int], OffsetValue]
"""The committed offsets of a group, by topic and partition."""


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
            if by_id:
                named = (
                    dataclasses.replace(topic, name=name_of(image, topic.topic_id))
                    for topic in part.topics
                )
                part = dataclasses.replace(part, topics=tuple(named))
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
        """The group's shard takes each part atomically, and not the whole: what waits for the log
        may fail for one part and not for another. Each partition has its own error."""

        def respond(answers: Sequence[schemas.OffsetCommitResponse]) -> Steps[None]:
            topics = (topic for answer in answers for topic in answer.topics)
            whole = yield from joined(topics, "partitions", lambda each: (each.name, each.topic_id))
            yield from context.respond_steps(schemas.OffsetCommitResponse(topics=whole))

        parts = yield from all_parts(request.topics, "partitions")
        collector = ResultCollector(len(parts), partial(run_with, context, respond))
        for index, part in enumerate(parts):
            yield
            commit(dataclasses.replace(request, topics=part), collector.slot(index))

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

            collector = ResultCollector(len(request.groups), context.callback(respond))
            by_id = context.version >= TOPIC_IDS_SINCE
            for index, group in enumerate(request.groups):
                if index:
                    yield
                yield from self._fetch_one(context, group, collector.slot(index), by_id)
            return
        group = yield from as_group(request)

        def answer(found: schemas.OffsetFetchResponseGroup) -> None:
            context.run(respond_one(found))

        def respond_one(found: schemas.OffsetFetchResponseGroup) -> Steps[None]:
            response = yield from of_one_group(found, group, context.version)
            yield from context.respond_steps(response)

        yield from self._fetch_one(context, group, answer, by_id=False)

    def _fetch_one(
        self,
        context: RequestContext,
        wanted: schemas.OffsetFetchRequestGroup,
        done: Callable[[schemas.OffsetFetchResponseGroup], None],
        by_id: bool,
    ) -> Steps[None]:
        topics = wanted.topics
        if topics is None:
            self._fetch_all_topics(context, wanted, done, by_id)
            return
        if is_short(topics, "partition_indexes"):
            self._fetch(wanted, done, by_id)
            return

        def join(groups: Sequence[schemas.OffsetFetchResponseGroup]) -> Steps[None]:
            refused = next((each for each in groups if each.error_code), None)
            found = (topic for group in groups for topic in group.topics)
            whole = yield from joined(found, "partitions", lambda each: (each.name, each.topic_id))
            done(refused or dataclasses.replace(groups[0], topics=whole))

        parts = yield from all_parts(topics, "partition_indexes")
        collector = ResultCollector(len(parts), partial(run_with, context, join))
        for index, part in enumerate(parts):
            yield
            self._fetch(dataclasses.replace(wanted, topics=part), collector.slot(index), by_id)

    def _fetch_all_topics(
        self,
        context: RequestContext,
        wanted: schemas.OffsetFetchRequestGroup,
        done: Callable[[schemas.OffsetFetchResponseGroup], None],
        by_id: bool,
    ) -> None:
        """Fetch what the group holds at one moment. The answer is made of it in steps."""

        def answer(held: Held | ErrorCode) -> None:
            if isinstance(held, ErrorCode):
                done(schemas.OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=held))
            else:
                context.run(describe(held))

        def describe(held: Held) -> Steps[None]:
            image = self.image()
            topics = []
            names = yield from in_order(held)
            pace = Pace()
            for name, places in groupby(names, key=itemgetter(0)):
                partitions = []
                for place in places:
                    partitions.append(fetched(place[1], held[place]))
                    if pace.is_time():
                        yield
                topic_id = image.topic_id(name) if by_id else ZERO_UUID
                topics.append(
                    schemas.OffsetFetchResponseTopics(
                        name=name, topic_id=topic_id, partitions=tuple(partitions)
                    )
                )
            group_id = wanted.group_id
            done(schemas.OffsetFetchResponseGroup(group_id=group_id, topics=tuple(topics)))

        def work(shard: Shard) -> Held | ErrorCode:
            return dict(shard.offsets.of(wanted.group_id))

        ask(self.coordinator, wanted.group_id, work, answer, lambda error: error)

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
        def respond(answers: Sequence[schemas.OffsetDeleteResponse]) -> Steps[None]:
            refused = next((each for each in answers if each.error_code), None)
            topics = (topic for answer in answers for topic in answer.topics)
            whole = yield from joined(topics, "partitions", lambda each: each.name)
            response = refused or dataclasses.replace(answers[0], topics=whole)
            yield from context.respond_steps(response)

        parts = yield from all_parts(request.topics, "partitions")
        collector = ResultCollector(len(parts), partial(run_with, context, respond))
        for index, part in enumerate(parts):
            yield
            delete(dataclasses.replace(request, topics=part), collector.slot(index))


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


def run_with(
    context: RequestContext, steps: Callable[[Sequence[T]], Steps[None]], answers: Sequence[T]
) -> None:
    """Let the server run `steps` on these answers."""
    context.run(steps(answers))
