"""Exceptions that leave a block that changes state."""

from __future__ import annotations

import pytest

from quorate.quorum.state_in_doubt import StateInDoubt, changing


def test_an_unexpected_exception_puts_the_state_in_doubt() -> None:
    with (
        pytest.raises(StateInDoubt, match=r"log of t-0 .* KeyError") as doubt,
        changing("the log of t-0"),
    ):
        raise KeyError("x")
    assert isinstance(doubt.value.__cause__, KeyError)


def test_an_expected_exception_passes() -> None:
    with pytest.raises(OSError, match="full"), changing("the log of t-0", OSError):
        raise OSError("full")


def test_a_cancellation_passes() -> None:
    with pytest.raises(KeyboardInterrupt), changing("the log of t-0"):
        raise KeyboardInterrupt


def test_nested_blocks_keep_the_innermost_name() -> None:
    with (
        pytest.raises(StateInDoubt, match=r"^inner was"),
        changing("outer"),
        changing("inner"),
    ):
        raise ValueError
