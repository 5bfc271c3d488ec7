"""The rules about the order of steps and about their nodes, which are checked before a run. Pure.

A step that cannot do anything is a mistake in the file, and not a good verdict. Errors name the
file and the line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from quorate.cli.chaos.scenario.keys import (
    ACTIVE,
    ANY_BROKER,
    ANY_CONTROLLER,
    FOLLOWER,
    LEADER,
    OF_PARTITION,
    STANDBY,
    VICTIM,
)
from quorate.cli.chaos.scenario.scenario import Scenario, Step
from quorate.cli.chaos.scenario.steps import ANY, BROKER, DISK, DOWN, PAUSED, STEPS

NEEDS_STATE = {"start": DOWN, "resume": PAUSED, "wait-stopped": DISK}
"""The state that the node of a step must have before it."""
NEEDS_FAULT = {"wait-resigned": "it need not resign", "wait-lasted": "none lasts"}
"""The steps whose node must have some fault, and what would not happen without one."""
CONTROLLER_ROLES = frozenset({ACTIVE, STANDBY, ANY_CONTROLLER})
BROKER_ROLES = frozenset({LEADER, FOLLOWER, ANY_BROKER})
EVERY = "every node"
"""The subject of `kill-all`."""
RACK = "a rack"
"""The subject of `kill-rack`."""
SLOW = frozenset({"slow-link", "slow-clients"})
"""The steps that need a delay or a throttle."""


class WrongOrder(ValueError):
    """A step that cannot do what it says. `line` is its line in the file."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Progress:
    """The faults that last after some steps of a variant. A node is named by its id, or by the
    step that resolved its role."""

    victim: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    """The role, or the id as text, with which each node was named."""
    pinned: bool = False
    reassigns: bool = False


def check_order(steps: Collection[Step]) -> None:
    """Raise WrongOrder for the first step of a variant that cannot do anything after those before.

    At least one step must cause a fault."""
    progress = Progress()
    for step in steps:
        follow(progress, step)
    caused = ("kill-all", "kill-rack", "roll", *(do for do, kind in STEPS.items() if kind.causes))
    if not any(step.do in caused for step in steps):
        line = next(iter(steps)).line
        raise WrongOrder(line, f"no step causes a fault: use one of {', '.join(caused)}")


def follow(progress: Progress, step: Step) -> None:
    """Advance the progress by one step. Raise WrongOrder if the step cannot do anything."""

    def require(holds: object, why: str) -> None:
        if not holds:
            raise WrongOrder(step.line, f"step {step.do}: {why}")

    node = named(progress, step)
    state, causes = progress.faults.get(node, ""), STEPS[step.do].causes
    if step.do in SLOW:
        slow = step.values["delay_ms"] or step.values["bytes_per_s"]
        require(slow, "delay_ms or bytes_per_s must be more than 0")
    if causes:
        require(EVERY not in progress.faults, "every node is down")
        require(not state, f"this node is {state} already")
        progress.faults[node] = causes
    elif step.do in ("kill-all", "kill-rack"):
        require(not progress.faults, "some nodes have faults: end these first")
        progress.faults[EVERY if step.do == "kill-all" else RACK] = DOWN
    elif step.do == "start-all":
        require(DOWN in progress.faults.values(), "no node is down")
        progress.faults = {key: was for key, was in progress.faults.items() if was != DOWN}
    elif step.do in NEEDS_STATE:
        require(state == NEEDS_STATE[step.do], f"this node is not {NEEDS_STATE[step.do]}")
        del progress.faults[node]
        if step.do == "wait-stopped":
            progress.faults[node] = DOWN
    elif step.do == "heal":
        healed = {key for key, was in progress.faults.items() if was != DOWN}
        require(healed, "there is no fault to end: `start` starts nodes that are down")
        progress.faults = dict.fromkeys(progress.faults.keys() - healed, DOWN)
    elif step.do == "roll":
        require(not progress.faults, "some nodes have faults: end these first")
    elif step.do in NEEDS_FAULT:
        require(state, f"this node has no fault, so {NEEDS_FAULT[step.do]}")
    else:
        follow_pair(progress, step.do, require)


def follow_pair(progress: Progress, do: str, require: Callable[[object, str], None]) -> None:
    """Advance the progress by a step that another one must precede, or that occurs once."""
    if do == "pin-writer":
        require(not progress.pinned, "a pinned writer runs already: use unpin-writer first")
        progress.pinned = True
    elif do == "unpin-writer":
        require(progress.pinned, "no pinned writer runs: use pin-writer first")
        progress.pinned = False
    elif do == "reassign":
        require(not progress.reassigns, "a reassignment runs already: use wait-reassigned first")
        progress.reassigns = True
    elif do == "wait-reassigned":
        require(progress.reassigns, "no reassignment runs: use reassign first")
        progress.reassigns = False


def named(progress: Progress, step: Step) -> str:
    """Return the name of the step's node for `progress`, and make it the victim. "" for none."""
    value = step.values.get("node")
    if value is None:
        return ""
    if value == VICTIM:
        if not progress.victim:
            raise WrongOrder(step.line, f"step {step.do}: victim: no step before has named a node")
    else:
        progress.victim = f"node {value}" if isinstance(value, int) else f"{value}, {step.line}"
        progress.roles[progress.victim] = str(value)
    role, kind = progress.roles[progress.victim], STEPS[step.do].of
    of_broker = role in BROKER_ROLES or OF_PARTITION.fullmatch(role) is not None
    if kind != ANY and (role in CONTROLLER_ROLES if kind == BROKER else of_broker):
        raise WrongOrder(step.line, f"step {step.do}: the {role} is no {kind}")
    if step.do in NEEDS_STATE and isinstance(value, str) and value != VICTIM:
        raise WrongOrder(
            step.line, f"step {step.do}: node: value {value!r} must be an id or {VICTIM}"
        )
    return progress.victim


def check_nodes(scenario: Scenario, controllers: Collection[int], brokers: Collection[int]) -> None:
    """Raise WrongOrder for the first step whose node a cluster with these nodes does not have."""
    for variant in scenario.variants:
        for step in variant.steps:
            value = step.values.get("node")
            known = set(controllers) | set(brokers)
            if STEPS[step.do].of != ANY:
                known = set(brokers if STEPS[step.do].of == BROKER else controllers)
            if isinstance(value, int) and value not in known:
                ids = ", ".join(map(str, sorted(known)))
                raise WrongOrder(
                    step.line, f"step {step.do}: node: value {value} must be one of {ids}"
                )
            if value == STANDBY and len(controllers) < 2:
                raise WrongOrder(step.line, f"step {step.do}: there is one controller only")
            if value == FOLLOWER and len(brokers) < 2:
                raise WrongOrder(step.line, f"step {step.do}: there is one broker only")
            replicas = scenario.workload.replication_factor
            if step.do == "reassign" and len(brokers) <= replicas:
                raise WrongOrder(
                    step.line, f"step reassign: there must be more than {replicas} brokers"
                )
            named_partition = OF_PARTITION.fullmatch(str(value))
            partitions = scenario.workload.partitions
            if named_partition and int(named_partition[2]) >= partitions:
                raise WrongOrder(
                    step.line, f"step {step.do}: {value}: there are {partitions} partitions"
                )
