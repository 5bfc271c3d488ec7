"""Exceptions that outlive the handling of what caused them, and must not keep its bytes."""

from __future__ import annotations


def drop_stack_frames(error: BaseException) -> None:
    """Remove from `error` everything that refers to stack frames.

    A traceback refers to the frames' variables, and so to the request's bytes. After `gc.freeze`
    no collection finds such a cycle, and its memory would be lost."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            pending += (each.__context__, each.__cause__)
            each.__traceback__ = each.__context__ = each.__cause__ = None
