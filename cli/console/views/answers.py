"""Requests to several brokers at the same time, and the notes about those that do not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from quorate.cli.client.admin import Admin
from quorate.cli.client.connection import ConnectionLost, Unsupported
from quorate.cli.client.errors import Refused
from quorate.quorum.protocol.wire import Message

R = TypeVar("R", bound=Message)


class Notes:
    """Sentences about what a reading lacks, each one once. `silent` are the brokers that have not
    answered in this reading."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}
        self.silent: set[int] = set()

    def add(self, sentence: str) -> None:
        """Add a sentence, without its full stop."""
        self._sentences[sentence] = None

    def __str__(self) -> str:
        return "; ".join(self._sentences)


def answers_of(
    admin: Admin, requests: Mapping[int, Message], response: type[R], notes: Notes
) -> dict[int, R]:
    """Return the responses of the brokers by their ids. A broker that does not answer is left out,
    and is in the notes. It is not asked again with the same notes.

    The call blocks for the timeout of the Admin at most per broker that hangs. Raise Refused if a
    broker does not serve the API."""
    asked = {broker: each for broker, each in requests.items() if broker not in notes.silent}
    try:
        found = admin.ask_nodes(asked, response)
    except Unsupported as error:
        raise Refused(str(error)) from None
    answers: dict[int, R] = {}
    for broker, answer in found.items():
        if isinstance(answer, ConnectionLost):
            notes.silent.add(broker)
            notes.add(f"broker {broker} does not answer")
        else:
            answers[broker] = answer
    return answers
