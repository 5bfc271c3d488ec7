"""The schedule of faults, drawn from a seed before the cluster starts.

Processes, disks and links are hurt, and the page cache outlives them: whatever is drawn, nothing
that was acknowledged may be lost. At `seconds` everything works again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

FIRST_S = 1.0
LAST_S = 0.5
"""Nothing new happens so shortly before the end."""
CLIENTS = 0
"""All clients, as an end of links."""


class Action(enum.Enum):
    KILL = "kill -9"
    STOP = "stop in order"
    START = "start"
    PAUSE = "SIGSTOP"
    RESUME = "SIGCONT"
    FULL_DISK = "disk is full"
    FAILING_DISK = "disk fails"
    SLOW_DISK = "disk is slow"
    FAST_DISK = "disk is fast again"
    CUT = "cut"
    HOLD = "held"
    ONE_WAY = "sends nothing"
    DELAY = "late"
    CONNECT = "connected again"


ENDS = {
    Action.KILL: Action.START,
    Action.STOP: Action.START,
    Action.PAUSE: Action.RESUME,
    Action.FULL_DISK: Action.START,
    Action.FAILING_DISK: Action.START,
    Action.SLOW_DISK: Action.FAST_DISK,
    Action.CUT: Action.CONNECT,
    Action.HOLD: Action.CONNECT,
    Action.ONE_WAY: Action.CONNECT,
    Action.DELAY: Action.CONNECT,
}
PROCESS_FAULTS = {Action.KILL: 5, Action.PAUSE: 4, Action.STOP: 1}
DISK_FAULTS = {Action.FULL_DISK: 1, Action.FAILING_DISK: 1, Action.SLOW_DISK: 2}
LINK_FAULTS = {Action.CUT: 2, Action.HOLD: 2, Action.ONE_WAY: 3, Action.DELAY: 2}
"""Each kind with its weight."""
DURATIONS_S = ((0.0, 0.3), (0.3, 2.0), (2.0, 8.0))
"""A blink; shorter than the session timeouts; longer."""
DURATION_WEIGHTS = (3, 4, 2)
DISK_LEAST_S = 0.5
"""A disk is hurt for so much longer, because a node does not write all the time."""
PAUSES_S = ((0.0, 0.2), (0.2, 1.5), (1.5, 4.0))
"""Between one fault and the next, which may begin while the first lasts."""
CALMER = 2.5
"""Pauses are so much longer where disks and links are hurt, too. Otherwise the cluster would hardly
ever be able to acknowledge a record."""


@dataclass(frozen=True, slots=True, order=True)
class Step:
    at_s: float
    number: int
    """Steps of the same moment keep the order in which they were drawn."""
    action: Action
    node_id: int
    peers: tuple[int, ...] = ()
    """The other ends of the links that are hurt. CLIENTS is one of the ends that a link can have.
    Empty for faults of a process or of a disk."""

    def __str__(self) -> str:
        peers = f" with {','.join(map(str, self.peers))}" if self.peers else ""
        return f"{self.at_s:6.2f} s  node {self.node_id}{peers}: {self.action.value}"


Drawn = tuple[float, Action, int, tuple[int, ...]]


def schedule(
    seed: int,
    seconds: float,
    controllers: Sequence[int],
    brokers: Sequence[int],
    *,
    disks_and_links: bool = False,
) -> list[Step]:
    """Return the steps in the order of time.

    A node has one fault of its process or its disk at a time, and two ends have one fault of their
    links at a time."""
    controllers, brokers = tuple(controllers), tuple(brokers)
    kinds = PROCESS_FAULTS | DISK_FAULTS if disks_and_links else PROCESS_FAULTS
    calmer = CALMER if disks_and_links else 1.0
    drawn = list(_of_nodes(Random(seed), seconds, controllers, brokers, kinds, calmer))
    if disks_and_links:
        drawn += _of_links(Random(~seed), seconds, controllers, brokers)
    steps = [
        Step(at_s, number, action, node_id, peers)
        for number, (at_s, action, node_id, peers) in enumerate(drawn)
    ]
    return sorted(steps, key=lambda step: (step.at_s, step.number))


def _kinds(random: Random, weights: dict[Action, int]) -> Iterator[Action]:
    """Yield each kind once, and then what chance decides."""
    yield from random.sample(tuple(weights), len(weights))
    while True:
        yield from random.choices(tuple(weights), tuple(weights.values()))


def _moments(random: Random, seconds: float, calmer: float) -> Iterator[tuple[float, float]]:
    """Yield the time of each fault and its duration, in s."""
    at_s = FIRST_S
    while at_s < seconds - LAST_S:
        yield at_s, random.uniform(*random.choices(DURATIONS_S, DURATION_WEIGHTS)[0])
        at_s += random.uniform(*random.choice(PAUSES_S)) * calmer


def _of_nodes(
    random: Random,
    seconds: float,
    controllers: tuple[int, ...],
    brokers: tuple[int, ...],
    weights: dict[Action, int],
    calmer: float,
) -> Iterator[Drawn]:
    groups = (controllers, brokers, (*controllers, *brokers))
    free_at_s = dict.fromkeys(groups[-1], 0.0)
    kinds = _kinds(random, weights)
    for at_s, lasts_s in _moments(random, seconds, calmer):
        group = random.choice(groups)
        count = random.choices((1, 2, len(group)), (12, 4, 1))[0]
        victims = [each for each in random.sample(group, count) if free_at_s[each] <= at_s]
        if not victims:
            continue
        action = next(kinds)
        if action in DISK_FAULTS:
            lasts_s += DISK_LEAST_S
        end_s = min(seconds, at_s + lasts_s)
        for node_id in victims:
            yield at_s, action, node_id, ()
            yield end_s, ENDS[action], node_id, ()
            free_at_s[node_id] = end_s


def _of_links(
    random: Random, seconds: float, controllers: tuple[int, ...], brokers: tuple[int, ...]
) -> Iterator[Drawn]:
    ends = (CLIENTS, *controllers, *brokers)
    free_at_s: dict[frozenset[int], float] = {}
    kinds = _kinds(random, LINK_FAULTS)
    for at_s, lasts_s in _moments(random, seconds, CALMER):
        node_id = random.choice(ends)
        talks = [peer for peer in ends if linked(node_id, peer, brokers)]
        count = random.choices((1, 2, len(talks)), (6, 3, 3))[0]
        end_s = min(seconds, at_s + lasts_s)
        peers = tuple(
            peer
            for peer in sorted(random.sample(talks, count))
            if free_at_s.get(frozenset((node_id, peer)), 0.0) <= at_s
        )
        if peers:
            action = next(kinds)
            yield at_s, action, node_id, peers
            yield end_s, ENDS[action], node_id, peers
        for peer in peers:
            free_at_s[frozenset((node_id, peer))] = end_s


def linked(one: int, other: int, brokers: Sequence[int]) -> bool:
    """Return True if there are connections between the two ends. Clients talk to brokers only."""
    if CLIENTS in (one, other):
        return one in brokers or other in brokers
    return one != other
