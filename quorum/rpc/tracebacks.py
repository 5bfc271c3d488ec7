"""Exceptions that outlive the request that caused them. They must not keep its bytes in memory."""

from __future__ import annotations


def drop_stack_frames(error: BaseException) -> None:
    """Remove from `error` all references to stack frames, including those of its context and cause.

    A traceback refers to the variables of the frames, and through them to the bytes of the request.
    After `gc.freeze` no collection finds such a cycle, so its memory would leak."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            pending += (each.__context__, each.__cause__)
            each.__traceback__ = each.__context__ = each.__cause__ = None
