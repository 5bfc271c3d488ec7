"""Plays a script on the real cores and returns it with the trace that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.scripts.language import ScriptError, Step, parse, render
from tests.scripts.partition import ScriptedPartition
from tests.scripts.quorum import Quorum


class World(Protocol):
    """The nodes of one script."""

    @property
    def trace(self) -> list[str]:
        """The lines of the present step."""

    def run(self, step: Step) -> list[str]:
        """Carry out one command and return its trace. Raise ScriptError for an unknown command."""


WORLDS: dict[str, Callable[[Step], World]] = {"nodes": Quorum, "brokers": ScriptedPartition}
"""The first command of a script makes its world."""


def play(text: str) -> str:
    """Return the script with the trace of each step replaced by the present one. Raise ScriptError
    if a line cannot be read or carried out."""
    world: World | None = None
    played = []
    for step in parse(text):
        if not step.command:
            played.append(step)
        elif world is None:
            if step.command not in WORLDS:
                raise step.error(f"a script begins with one of {', '.join(WORLDS)}")
            world = WORLDS[step.command](step)
            played.append(step.with_trace(world.trace))
        else:
            try:
                played.append(step.with_trace(world.run(step)))
            except (AssertionError, ValueError, KeyError, IndexError) as error:
                raise ScriptError(f"line {step.line}, {step.command}: {error!r}") from error
    return render(played)
