"""The outcome of the check of one request, and the checks that most APIs need.

A check divides a request into the part that the client may ask, and the answers for the rest. The
handler or rule of the API gets only the part. `Checked.amend` then adds the other answers to its
response, and removes the entries that the client may not see. A check never looks whether a
forbidden name exists, so the answer is the same.

A check is a generator, because requests and responses can have very many entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from quorate.quorum.authorization.permits import DENIED, Permits
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.acl_codes import Operation, ResourceType
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.wire import Message

T = TypeVar("T")
Amend = Callable[[Any], IncrementalWork[Any]]
"""Returns the response of a handler with the changes that the client's permissions require."""
ITEM_ENTRIES = 8
"""The weight of a decision, in entries of a step (`Pace`)."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check: the rest of the request, and the amendment of its response.

    At most one of `answer` and `error` is set, and then no handler sees the request: the client
    gets the answer, or the error of the whole request."""

    request: Any
    amend: Amend | None = None
    answer: Message | None = None
    error: ErrorCode | None = None


Check = Callable[[Permits, Any, int], IncrementalWork[Checked]]
"""Takes the client's permissions, the request and its version."""


def free(permits: Permits, request: Any, version: int) -> IncrementalWork[Checked]:
    """Check nothing, because every client may send the request."""
    yield from ()
    return Checked(request)


def on_cluster(
    operation: Operation, refused: Callable[[Any, ErrorCode], Message] | None = None
) -> Check:
    """Return the check of a request that needs one operation on the cluster.

    `refused` makes the answer of an API whose response has no error of the whole request."""

    def check(permits: Permits, request: Any, version: int) -> IncrementalWork[Checked]:
        yield from ()
        if permits.cluster(operation):
            return Checked(request)
        error = DENIED[ResourceType.CLUSTER]
        if refused is not None:
            return Checked(request, answer=refused(request, error))
        return Checked(request, error=error)

    return check


def on_group(operation: Operation) -> Check:
    """Return the check of a request about one group, whose response has an error."""

    def check(permits: Permits, request: Any, version: int) -> IncrementalWork[Checked]:
        yield from ()
        if permits.allows(operation, ResourceType.GROUP, request.group_id):
            return Checked(request)
        return Checked(request, error=DENIED[ResourceType.GROUP])

    return check


def on_each(
    items: str,
    operation: Operation,
    resource_type: ResourceType,
    *,
    name: Callable[[Any], str],
    results: str,
    denied: Callable[[Any, ErrorCode], Any],
) -> Check:
    """Return the check of a request that names resources in its field `items`.

    The response has one result for each in its field `results`, and `denied` makes that of a
    resource that the client may not use."""

    def check(permits: Permits, request: Any, version: int) -> IncrementalWork[Checked]:
        allowed, refused = yield from divided(
            getattr(request, items),
            lambda item: permits.allows(operation, resource_type, name(item)),
        )
        if not refused:
            return Checked(request)
        more = tuple(denied(item, DENIED[resource_type]) for item in refused)
        return Checked(replace(request, **{items: allowed}), added_to(results, more))

    return check


def divided(
    items: Iterable[T], allowed: Callable[[T], bool]
) -> IncrementalWork[tuple[tuple[T, ...], tuple[T, ...]]]:
    """Return the items that are allowed, and the others, in steps."""
    pace = Pace()
    kept: list[T] = []
    left: list[T] = []
    for item in items:
        if pace.is_time(ITEM_ENTRIES):
            yield
        (kept if allowed(item) else left).append(item)
    return tuple(kept), tuple(left)


def added_to(field: str, more: tuple[Any, ...]) -> Amend:
    """Return the amendment that appends `more` to a field of the response."""

    def amend(response: Any) -> IncrementalWork[Any]:
        yield from ()
        return replace(response, **{field: (*getattr(response, field), *more)})

    return amend


def only(field: str, visible: Callable[[Any], bool]) -> Amend:
    """Return the amendment that keeps the visible entries of a field of the response, in steps."""

    def amend(response: Any) -> IncrementalWork[Any]:
        kept, left = yield from divided(getattr(response, field), visible)
        return replace(response, **{field: kept}) if left else response

    return amend
