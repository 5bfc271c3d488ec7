"""The last exception handler of a node, and the exceptions that stop the node."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, cast

import pytest

from quorate.quorum.node import unhandled
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.node.unhandled import on_unhandled
from quorate.quorum.state_in_doubt import StateInDoubt


class Core:
    def __init__(self) -> None:
        self.failures: list[BaseException] = []

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)


def handled(context: dict[str, Any]) -> list[BaseException]:
    core, loop = Core(), asyncio.new_event_loop()
    try:
        on_unhandled(cast(NodeCore, core), loop, {"message": "m", **context})
    finally:
        loop.close()
    return core.failures


def test_an_exception_that_no_one_caught_stops_the_node() -> None:
    error = ValueError("x")
    assert handled({"exception": error}) == [error]
    full = OSError(errno.EMFILE, "too many open files")
    assert handled({"exception": full}) == [full], "the node lacked a file of its own"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_an_accept_without_resources_does_not(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A peer that opens connections must not stop the node. asyncio accepts again later."""
    monkeypatch.setattr(unhandled._connection_line, "next_s", 0.0)
    for _ in range(1024):  # asyncio reports each place of the backlog
        assert handled({"exception": OSError(number, "x"), "socket": object()}) == []
    assert len(caplog.records) == 1


def test_an_exception_while_frames_are_cut_closes_its_connection() -> None:
    context = {"transport": object(), "protocol": object()}
    assert handled({"exception": MemoryError(), **context}) == []
    doubt = StateInDoubt("the log")
    assert handled({"exception": doubt, **context}) == [doubt]
