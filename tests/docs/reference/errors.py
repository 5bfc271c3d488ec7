"""The page of errors: exit codes of commands, Kafka's error codes, and exceptions in Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import quorate.testing
from quorate.cli.client import errors as exit_codes
from quorate.config.key import ConfigError
from quorate.quorum.analytics.log import errors as history_errors
from quorate.quorum.protocol.errors import ErrorCode
from tests.docs.reference.markdown import table, text

PAGE = "reference/errors.md"
MODULES = {"quorate.testing": quorate.testing, history_errors.__name__: history_errors}


def pages() -> dict[str, str]:
    """Return the page by its path."""
    return {PAGE: "\n".join(_page()) + "\n"}


def _page() -> Iterator[str]:
    yield "# Errors\n"
    yield "## Exit codes of commands\n"
    yield from table(("code", "meaning"), exit_meanings())
    yield "## Kafka's error codes\n"
    yield "A broker answers with a code and often with a message of its own. Clients send a request"
    yield "again by themselves if its error is retriable.\n"
    yield from table(
        ("code", "name", "retriable", "default message"),
        (
            (str(each.value), f"`{each.name}`", "yes" if each.retriable else "", text(each.message))
            for each in ErrorCode
        ),
    )
    yield "## Exceptions in Python\n"
    yield from table(
        ("exception", "module", "meaning"),
        (
            (f"`{each.__name__}`", f"`{module}`", text(inspect.getdoc(each) or ""))
            for module, each in exceptions()
        ),
    )


def exit_meanings() -> list[tuple[str, str]]:
    """Return the exit codes with their meanings, from the docstring of the module that has them."""
    listed = re.findall(r"^- (\d+): (.+?)\.$", exit_codes.__doc__ or "", re.M | re.S)
    return [(number, text(meaning)) for number, meaning in listed]


def exceptions() -> Iterator[tuple[str, type[Exception]]]:
    """Yield the name of a module of the Python API and an exception of it."""
    yield "quorate.config.key", ConfigError
    for name, module in MODULES.items():
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Exception):
                yield name, each
