"""Principals of Kafka, such as `User:alice`: the identities of clients.

A connection has the principal that its listener has authenticated. The rules compare principals as
a whole, and Kafka's text of one is stored in ACLs and sent in envelopes.
"""

from __future__ import annotations

from typing import NamedTuple

USER = "User"
SEPARATOR = ":"


class Principal(NamedTuple):
    """The type and the name of a principal. Every client of Kafka has the type User."""

    type: str
    name: str

    def __str__(self) -> str:
        """Return Kafka's text, such as `User:alice`."""
        return f"{self.type}{SEPARATOR}{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal of a connection that is not authenticated."""


def parse_principal(text: str) -> Principal:
    """Return the principal of Kafka's text. The name may contain colons.

    Raise ValueError if the type, the name or the colon is missing."""
    kind, separator, name = text.partition(SEPARATOR)
    if not (kind and separator and name):
        raise ValueError(f"{text!r} is not a principal: it must be like User:alice")
    return Principal(kind, name)
