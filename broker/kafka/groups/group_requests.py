"""Routes group requests to the shard that coordinates the group, and their results back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.shard import Shard
from quorate.broker.groups.shard_context import ShardContext
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.server import RequestContext

TOPIC_IDS_SINCE = 10
"""The first version of OffsetCommit and OffsetFetch that names topics by id (KIP-848)."""

T = TypeVar("T")


def ask(
    coordinator: GroupCoordinator,
    group_id: str,
    work: Callable[[Shard], T],
    done: Callable[[T], None],
    refusal: Callable[[ErrorCode], T],
) -> None:
    """Call `done` with the result of `work(shard)`, when everything that the shard has appended so
    far is committed.

    Call `done(refusal(error))` instead if there is no loaded shard (`GroupCoordinator.find`), if
    `work` raises, or if leadership is lost before the commit. In the last case, the records of
    `work` may be committed nevertheless. `done` is called exactly once, and it may be called before
    this function returns. It must not raise.
    """

    def refuse(error: ErrorCode) -> None:
        done(refusal(error))

    def found(shard_context: ShardContext) -> None:
        try:
            answer = work(shard_context.shard)
        except KafkaError as error:
            refuse(error.code)
            return
        shard_context.journal.when_committed(lambda error: refuse(error) if error else done(answer))

    coordinator.find(group_id, found, refuse)


def check_group_id(group_id: str) -> None:
    """Raise KafkaError (INVALID_GROUP_ID) if the group id is empty.

    Requests of members need a group id. Offsets may be committed under the empty group id.
    """
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def name_of(image: MetadataImage, topic_id: Uuid) -> str:
    """Return the name of the topic, or the empty string if no topic has this id."""
    topic = image.topics.get(topic_id)
    return "" if topic is None else topic.name


def run_with(
    context: RequestContext,
    steps: Callable[[Sequence[T]], IncrementalWork[None]],
    answers: Sequence[T],
) -> None:
    """Let the server run `steps(answers)` in slices."""
    context.run(steps(answers))
