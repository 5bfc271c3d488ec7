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
    """With the error code that says so."""

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
    """Nobody knows whether it was done."""

    def apply(state: S) -> tuple[S] | None:
        try:
            return (step(state),)
        except Impossible:
            return (state,)

    return apply


def found(now: S) -> Apply[S]:
    return lambda state: (state,) if state == now else None
