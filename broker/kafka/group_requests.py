"""How group requests reach the shard that coordinates the group, and how its answers go back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from quorate.broker.groups.coordinator import GroupCoordinator, ShardContext
from quorate.broker.groups.shard import Shard
from quorate.quorum.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")


def ask(
    coordinator: GroupCoordinator,
    group_id: str,
    work: Callable[[Shard], T],
    done: Callable[[T], None],
    refusal: Callable[[ErrorCode], T],
) -> None:
    """What `work` answers, once all that it may rest on is committed."""

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
    """Members need one; offsets may be kept under the empty one."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
