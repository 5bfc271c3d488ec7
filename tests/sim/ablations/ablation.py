"""One safeguard, the function that is replaced to be without it, and the history that then breaks.

There is no switch in production code: the function is patched only while a story runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tests.sim.ablations.stories import Story


@dataclass(frozen=True, slots=True)
class Ablation:
    name: str
    """The name in `make break SAFEGUARD=...`."""
    safeguard: str
    """The rule that production follows, in one line."""
    owner: Any
    attribute: str
    instead: Any
    story: Story
    caught: str
    """A part of the message of the failure."""

    def __str__(self) -> str:
        return self.name

    @property
    def replaced(self) -> str:
        """The name of the replaced function, with its class or module."""
        owner = self.owner
        place = owner.__name__ if isinstance(owner, type) else owner.__name__.rpartition(".")[2]
        return f"{place}.{self.attribute}"

    @contextmanager
    def in_force(self) -> Iterator[None]:
        with mock.patch.object(self.owner, self.attribute, self.instead):
            yield
