"""The histories of the ablations, each of the cheapest kind that shows its safeguard.

Every story passes with unchanged production code. Without its safeguard it raises the message of an
invariant.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pytest

from quorate.quorum.log.files.errors import LogError
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot
from quorate.quorum.raft.errors import InvariantViolation
from tests.sim.checks.invariants import Violation
from tests.sim.run import play, simulation
from tests.sim.scripts.scenarios import SHAPES, Scenario
from tests.sim.world.cluster import NodeStopped
from tests.sim.world.shape import Shape
from tests.unit.partition import test_walk as partition_walk
from tests.unit.raft.walk import Walk

BROKEN = (
    AssertionError,
    InvariantViolation,
    Violation,
    NodeStopped,
    LogError,
    CorruptSnapshot,
    pytest.fail.Exception,
)
"""The exceptions of a story that fails."""


class Story(Protocol):
    @property
    def name(self) -> str: ...

    def tell(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RaftWalk:
    """A random history of pure cores (tests/unit/raft/walk.py)."""

    seed: int
    steps: int

    @property
    def name(self) -> str:
        return f"raft walk {self.seed}, {self.steps} steps"

    def tell(self) -> None:
        Walk(self.seed, steps=self.steps).run()


@dataclass(frozen=True, slots=True)
class PartitionWalk:
    """A random history of three replicas of a partition (tests/unit/partition/test_walk.py)."""

    seed: int
    steps: int

    @property
    def name(self) -> str:
        return f"partition walk {self.seed}, {self.steps} steps"

    def tell(self) -> None:
        walk = partition_walk.Walk(self.seed)
        for _ in range(self.steps):
            walk.step()
        walk.settle()


@dataclass(frozen=True, slots=True)
class Script:
    """A scripted scenario. Most of them are tests, too."""

    script: Callable[[], None]

    @property
    def name(self) -> str:
        return self.script.__name__.removeprefix("test_")

    def tell(self) -> None:
        self.script()


@dataclass(frozen=True, slots=True)
class Scene:
    """A scenario of the whole cluster (tests/sim/scripts/scenarios.py)."""

    scenario: Scenario
    seed: int | str = 0
    shape: Shape | None = None

    @property
    def name(self) -> str:
        return f"scenario {self.scenario.__name__}, seed {self.seed}"

    def tell(self) -> None:
        with simulation(self.seed, self.shape or SHAPES.get(self.scenario)) as stage:
            play(stage, self.scenario(stage))


def said(error: BaseException) -> str:
    """Return the message of an invariant, or the first line of an assertion without a message."""
    message = str(error).partition("\n")[0]
    if message and not message.startswith("assert "):  # pytest's own words
        return message
    return traceback.extract_tb(error.__traceback__)[-1].line or message
