"""The requests that create and delete topics. Each function blocks, and raises NotReachable if no
node answers in time, or if the outcome is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.quorum import require_controller
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import topics as schemas

MAX_NAMED = 5
"""The most topics that an error names."""
UNSET = -1
"""The number of partitions or replicas that asks for the cluster's default."""


def create(admin: Admin, topic: schemas.CreatableTopic, *, if_not_exists: bool = False) -> bool:
    """Create a topic, and return True. With `if_not_exists` return False if it exists.

    Raise Refused if the cluster refuses the topic, or has no active controller."""
    require_controller(admin, f"topic '{topic.name}' was not created")
    answer = admin.change(
        schemas.CreateTopicsRequest(topics=(topic,), timeout_ms=admin.timeout_ms),
        schemas.CreateTopicsResponse,
        lambda answer: [each.error_code for each in answer.topics],
    )
    for result in answer.topics:
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
            return False
        raise_error(result.error_code, result.error_message)
    return True


def delete(admin: Admin, names: Sequence[str]) -> None:
    """Delete topics. Raise Refused on an error of one topic; the others may be deleted then. Raise
    it also if there is no active controller."""
    require_controller(admin, f"{topics_text(names)} not deleted")
    request = schemas.DeleteTopicsRequest(
        topics=tuple(schemas.DeleteTopicState(name=name) for name in names),
        topic_names=tuple(names),
        timeout_ms=admin.timeout_ms,
    )
    answer = admin.change(
        request,
        schemas.DeleteTopicsResponse,
        lambda answer: [each.error_code for each in answer.responses],
    )
    for result in answer.responses:
        raise_error(result.error_code, result.error_message)


def topics_text(names: Sequence[str]) -> str:
    """Return the beginning of a sentence about topics, such as "topics 'a', 'b' were"."""
    listed = ", ".join(f"'{name}'" for name in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"topic {listed} was" if len(names) == 1 else f"topics {listed}{more} were"


def raise_error(code: int, text: str | None) -> None:
    """Raise Refused with the server's message unless the error code is NONE."""
    if code:
        raise Refused(text or ErrorCode.of(code).message)
