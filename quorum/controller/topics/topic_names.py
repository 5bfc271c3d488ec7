"""Kafka's rules for topic names."""

from __future__ import annotations

import re

from quorate.quorum.clipped import clipped
from quorate.quorum.controller.state.partition_index import PartitionIndex
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.protocol.errors import ErrorCode

MAX_NAME_LENGTH = 249
MAX_QUOTED_LENGTH = 500
"""The number of characters of a name that an error quotes. Kafka quotes the whole name."""
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_new_name(index: PartitionIndex, name: str) -> None:
    """Raise RequestRefused if the name of a new topic is not legal or collides with an existing
    topic's metric names."""
    problem = what_is_wrong(name)
    if problem is None:
        existing = index.colliding_name(name)
        if existing is not None and existing != name:
            problem = f"Topic '{name}' collides with existing topic: {existing}"
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def what_is_wrong(name: str) -> str | None:
    """Return the reason why a topic name is not legal, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return (
            f"Topic name is invalid: the length of '{clipped(name, MAX_QUOTED_LENGTH)}' is longer "
            f"than the max allowed length {MAX_NAME_LENGTH}"
        )
    if LEGAL_NAME.fullmatch(name) is None:
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None
