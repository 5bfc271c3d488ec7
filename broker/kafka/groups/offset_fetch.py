"""Handles OffsetFetch (API key 9).

Since v8 a request names several groups (KIP-709). `offset_fetch_v7.py` converts the older form.
Since v10 clients name topics by id (KIP-848). Groups keep their offsets under topic names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.offset_requests import fetched
from quorate.broker.groups.records import OffsetValue
from quorate.broker.groups.shard import Shard
from quorate.broker.kafka.groups.group_requests import TOPIC_IDS_SINCE, ask, name_of, run_with
from quorate.broker.kafka.groups.offset_fetch_v7 import as_group, not_fetched, of_one_group
from quorate.broker.kafka.shared.request_parts import all_parts, is_short, joined
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.pace import Pace, in_order
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.rpc.kafka.server import RequestContext

SEVERAL_GROUPS_SINCE = 8
"""The first version that names several groups (KIP-709)."""

CommittedOffsets = Mapping[tuple[str, int], OffsetValue]
"""The committed offsets of a group, by topic and partition."""


@dataclass(frozen=True, slots=True)
class OffsetFetchHandler:
    """Handles OffsetFetch on one broker, on the broker's event loop."""

    coordinator: GroupCoordinator
    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: schemas.OffsetFetchRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the committed offsets of each group that the request names.

        The offsets are those of the named topics, or all offsets of the group if its `topics` is
        None. A partition without a committed offset gets offset -1, also in an unknown group. An
        unknown topic id gets UNKNOWN_TOPIC_ID. The errors of a group are NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS and UNKNOWN_SERVER_ERROR. Return the steps that are left, or
        None.
        """
        return begun(self._fetch_all(context, request))

    def _fetch_all(
        self, context: RequestContext, request: schemas.OffsetFetchRequest
    ) -> IncrementalWork[None]:
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

        def respond_one(found: schemas.OffsetFetchResponseGroup) -> IncrementalWork[None]:
            response = yield from of_one_group(found, group, context.version)
            yield from context.respond_steps(response)

        yield from self._fetch_one(context, group, answer, by_id=False)

    def _fetch_one(
        self,
        context: RequestContext,
        wanted: schemas.OffsetFetchRequestGroup,
        done: Callable[[schemas.OffsetFetchResponseGroup], None],
        by_id: bool,
    ) -> IncrementalWork[None]:
        topics = wanted.topics
        if topics is None:
            self._fetch_all_topics(context, wanted, done, by_id)
            return
        if is_short(topics, "partition_indexes"):
            self._fetch(wanted, done, by_id)
            return

        def join(groups: Sequence[schemas.OffsetFetchResponseGroup]) -> IncrementalWork[None]:
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
        """Copy all offsets of the group, and build the result from the copy in steps."""

        def answer(held: CommittedOffsets | ErrorCode) -> None:
            if isinstance(held, ErrorCode):
                done(schemas.OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=held))
            else:
                context.run(describe(held))

        def describe(held: CommittedOffsets) -> IncrementalWork[None]:
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

        def work(shard: Shard) -> CommittedOffsets | ErrorCode:
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
            lambda shard: shard.offset_requests.fetch(wanted),
            answer,
            lambda error: schemas.OffsetFetchResponseGroup(
                group_id=wanted.group_id, error_code=error
            ),
        )
