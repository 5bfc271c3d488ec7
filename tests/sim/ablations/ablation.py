"""One safeguard, the function that is replaced to be without it, and the history that then breaks.

There is no switch in production code: a replacement is patched in for as long as a story runs.
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
    """As `make break SAFEGUARD=...` knows it."""
    safeguard: str
    """What production does, in one line."""
    owner: Any
    attribute: str
    instead: Any
    story: Story
    caught: str
    """Part of what the failure says."""

    def __str__(self) -> str:
        return self.name

    @property
    def replaced(self) -> str:
        """The function, as a reader finds it."""
        owner = self.owner
        place = owner.__name__ if isinstance(owner, type) else owner.__name__.rpartition(".")[2]
        return f"{place}.{self.attribute}"

    @contextmanager
    def in_force(self) -> Iterator[None]:
        with mock.patch.object(self.owner, self.attribute, self.instead):
            yield
