"""The nodes that steps name by a role, resolved from the state of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from quorate.cli.chaos.scenario.keys import LEADER
from quorate.cli.chaos.timeline.cluster_states import ClusterStates


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes among which a role is chosen. `faulty` nodes have a fault now."""

    states: ClusterStates
    brokers: Collection[int]
    """The brokers that were unfenced at the start of the run."""
    controllers: Collection[int]
    faulty: Collection[int]
    victim: int | None
    draw: Callable[[Sequence[int]], int]
    """The function that draws one of some nodes, from the seed of the run."""


def leader(among: Candidates) -> int | None:
    """Return the broker without a fault that leads the most partitions, and at least one."""
    brokers = [
        each
        for each in sorted(among.brokers)
        if each not in among.faulty and among.states.led_by(each)
    ]
    return max(brokers, key=lambda each: (len(among.states.led_by(each)), -each), default=None)


def follower(among: Candidates) -> int | None:
    """Return the broker without a fault that leads the fewest partitions."""
    brokers = [each for each in sorted(among.brokers) if each not in among.faulty]
    return min(brokers, key=lambda each: (len(among.states.led_by(each)), each), default=None)


def controller(among: Candidates) -> int | None:
    """Return the active controller, or None if it has a fault."""
    return None if among.states.active in among.faulty else among.states.active


def standby(among: Candidates) -> int | None:
    """Return a controller without a fault that is not the active one."""
    known = (each for each in sorted(among.controllers) if each not in among.faulty)
    return next((each for each in known if each != among.states.active), None)


def any_broker(among: Candidates) -> int | None:
    """Draw a broker without a fault."""
    brokers = [each for each in sorted(among.brokers) if each not in among.faulty]
    return among.draw(brokers) if brokers else None


def any_controller(among: Candidates) -> int | None:
    """Draw a controller without a fault."""
    controllers = [each for each in sorted(among.controllers) if each not in among.faulty]
    return among.draw(controllers) if controllers else None


def victim(among: Candidates) -> int | None:
    """Return the node that a step named last."""
    return among.victim


def of(among: Candidates, role: str, partition: int) -> int | None:
    """Return the leader of a partition, or, for the role `follower`, the first other broker in its
    ISR. It has no fault."""
    now = among.states.leadership.now(partition)
    leads = -1 if now is None else now.leader
    isr = among.states.isr.get(partition, ())
    found = [leads] if role == LEADER else [each for each in isr if each != leads]
    return next((each for each in found if each >= 0 and each not in among.faulty), None)


TARGETS: Mapping[str, Callable[[Candidates], int | None]] = {
    "leader": leader,
    "follower": follower,
    "controller": controller,
    "standby": standby,
    "any-broker": any_broker,
    "any-controller": any_controller,
    "victim": victim,
}
"""The function that finds the node of a role. It returns None if there is no such node now."""
