"""Handles OffsetCommit (API key 8).

Since v10 clients name topics by id (KIP-848). Groups keep their offsets under topic names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.kafka.groups.group_requests import TOPIC_IDS_SINCE, ask, name_of, run_with
from quorate.broker.kafka.shared.request_parts import all_parts, is_short, joined
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.rpc.kafka.server import RequestContext


@dataclass(frozen=True, slots=True)
class OffsetCommitHandler:
    """Handles OffsetCommit on one broker, on the broker's event loop."""

    coordinator: GroupCoordinator
    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: schemas.OffsetCommitRequest
    ) -> IncrementalWork[None] | None:
        """Commit the offsets, and respond when they are committed in the log.

        Each partition has its own error. An error of the whole request is given for every
        partition. A long request is committed in parts of PARTITIONS_PER_PART partitions
        (`request_parts.py`), and one part may fail while another succeeds. Return the steps of a
        long request, or None.
        """
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
                lambda shard: shard.offset_requests.commit(part, context.version, refuse),
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
    ) -> IncrementalWork[None]:
        """Commit a long request in parts.

        Each part is one batch in the log. One part may therefore fail and another one succeed.
        """

        def respond(answers: Sequence[schemas.OffsetCommitResponse]) -> IncrementalWork[None]:
            topics = (topic for answer in answers for topic in answer.topics)
            whole = yield from joined(topics, "partitions", lambda each: (each.name, each.topic_id))
            yield from context.respond_steps(schemas.OffsetCommitResponse(topics=whole))

        parts = yield from all_parts(request.topics, "partitions")
        collector = ResultCollector(len(parts), partial(run_with, context, respond))
        for index, part in enumerate(parts):
            yield
            commit(dataclasses.replace(request, topics=part), collector.slot(index))


def not_committed(
    request: schemas.OffsetCommitRequest, error: ErrorCode
) -> schemas.OffsetCommitResponse:
    """Return the response that gives every partition of the request this error."""
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
