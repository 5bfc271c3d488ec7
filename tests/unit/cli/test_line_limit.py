"""The limit of log lines that a peer can cause with each connection."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from quorate.cli.nodes.line_limit import MAX_KINDS, MAX_LINES, LineLimit


class Clock:
    """A clock that a test sets."""

    now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def lines() -> Iterator[tuple[Clock, io.StringIO, logging.Logger]]:
    """A clock, the written text, and a logger with the limit."""
    clock, written = Clock(), io.StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(LineLimit(clock))
    logger = logging.getLogger("tests.line_limit")
    logger.propagate = False
    logger.addHandler(handler)
    yield clock, written, logger
    logger.removeHandler(handler)


def test_lines_of_one_kind_are_bounded_and_counted(
    lines: tuple[Clock, io.StringIO, logging.Logger],
) -> None:
    clock, written, logger = lines
    for number in range(10 * MAX_LINES):
        logger.warning("closing the connection from %s", number)
    logger.warning("the disk is full")
    passed = written.getvalue().splitlines()
    assert len(passed) == MAX_LINES + 1
    assert passed[-1] == "the disk is full", "other kinds are not affected"
    clock.now_s += 1
    logger.warning("closing the connection from %s", "me 100 %")
    logger.warning("closing the connection from %s", "you")
    assert written.getvalue().splitlines()[-2:] == [
        f"closing the connection from me 100 % ({9 * MAX_LINES} lines like it were left out)",
        "closing the connection from you",
    ]


def test_a_record_that_is_no_template_is_a_kind_of_its_own(
    lines: tuple[Clock, io.StringIO, logging.Logger],
) -> None:
    _, written, logger = lines
    logger.warning(ValueError("odd"))
    assert written.getvalue() == "odd\n"


def test_the_number_of_kinds_is_bounded(
    lines: tuple[Clock, io.StringIO, logging.Logger],
) -> None:
    _, _, logger = lines
    for number in range(3 * MAX_KINDS):
        logger.warning("formatted before the call: %d" % number)  # noqa: G002, UP031
    (limit,) = logger.handlers[0].filters
    assert isinstance(limit, LineLimit)
    assert len(limit._kinds) == MAX_KINDS
