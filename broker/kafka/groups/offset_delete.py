"""Handles OffsetDelete (API key 47): deletes committed offsets of a group (KIP-496)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.shard import Shard
from quorate.broker.kafka.groups.group_requests import ask, check_group_id, run_with
from quorate.broker.kafka.shared.request_parts import all_parts, is_short, joined
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.rpc.kafka.server import RequestContext


@dataclass(frozen=True, slots=True)
class OffsetDeleteHandler:
    """Handles OffsetDelete on one broker, on the broker's event loop."""

    coordinator: GroupCoordinator
    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: schemas.OffsetDeleteRequest
    ) -> IncrementalWork[None] | None:
        """Delete the offsets, and respond when the tombstones are committed in the log.

        Each partition has its own error. Errors of the whole request are INVALID_GROUP_ID and
        those of `OffsetRequests.delete` and `GroupCoordinator.find`. A long request is handled in
        parts. If a part fails, the response has only its error, although other parts may have
        deleted offsets. Return the steps of a long request, or None.
        """
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
                return shard.offset_requests.delete(part, refuse)

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
    ) -> IncrementalWork[None]:
        """Delete the offsets of a long request in parts. Each part is one batch in the log."""

        def respond(answers: Sequence[schemas.OffsetDeleteResponse]) -> IncrementalWork[None]:
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
    """Return the response of a request that failed as a whole."""
    return schemas.OffsetDeleteResponse(error_code=error, throttle_time_ms=0, topics=())
