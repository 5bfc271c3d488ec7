"""Checks answers of nodes against the states in which they may have been given.

A request is a step from one state to the next. It may be Impossible in some states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from quorate.quorum.protocol.errors import ErrorCode

S = TypeVar("S", bound=Hashable)
Step = Callable[[S], S]
"""Returns the state after a request, or raises Impossible if the state does not allow it."""
Apply = Callable[[S], tuple[S] | None]
"""Returns the state afterwards, or None if the state contradicts the answer."""


class Impossible(Exception):
    """Raised if a state does not allow a request. `error` is the code that a node answers then."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


def succeeded(step: Step[S]) -> Apply[S]:
    def apply(state: S) -> tuple[S] | None:
        try:
            return (step(state),)
        except Impossible:
            return None

    return apply


def refused(step: Step[S], error: ErrorCode) -> Apply[S]:
    def apply(state: S) -> tuple[S] | None:
        try:
            step(state)
        except Impossible as impossible:
            return (state,) if impossible.error is error else None
        return None

    return apply


def attempted(step: Step[S]) -> Apply[S]:
    """Return the effect of a request without a known outcome, if it is carried out. A state that
    does not allow the request stays as it is."""

    def apply(state: S) -> tuple[S] | None:
        try:
            return (step(state),)
        except Impossible:
            return (state,)

    return apply


def found(now: S) -> Apply[S]:
    return lambda state: (state,) if state == now else None
