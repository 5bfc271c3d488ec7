"""The schedule of faults, drawn from a seed before the cluster starts.

Only processes are hurt, and the page cache outlives them: whatever is drawn, nothing that was
acknowledged may be lost. At `seconds` everything runs again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

FIRST_S = 1.0
LAST_S = 0.5
"""Nothing new happens so shortly before the end."""


class Action(enum.Enum):
    KILL = "kill -9"
    STOP = "stop in order"
    START = "start"
    PAUSE = "SIGSTOP"
    RESUME = "SIGCONT"


ENDS = {Action.KILL: Action.START, Action.STOP: Action.START, Action.PAUSE: Action.RESUME}
HURTS = (Action.KILL, Action.PAUSE, Action.STOP)
HURT_WEIGHTS = (5, 4, 1)
DURATIONS_S = ((0.0, 0.3), (0.3, 2.0), (2.0, 8.0))
"""A blink; shorter than the session timeouts; longer."""
DURATION_WEIGHTS = (3, 4, 2)
PAUSES_S = ((0.0, 0.2), (0.2, 1.5), (1.5, 4.0))
"""Between one fault and the next, which may begin while the first lasts."""


@dataclass(frozen=True, slots=True, order=True)
class Step:
    at_s: float
    number: int
    """Steps of the same moment keep the order in which they were drawn."""
    action: Action
    node_id: int


def schedule(
    seed: int, seconds: float, controllers: Sequence[int], brokers: Sequence[int]
) -> list[Step]:
    drawn = _draw(Random(seed), seconds, tuple(controllers), tuple(brokers))
    steps = [
        Step(at_s, number, action, node_id) for number, (at_s, action, node_id) in enumerate(drawn)
    ]
    return sorted(steps, key=lambda step: (step.at_s, step.number))


def _draw(
    random: Random, seconds: float, controllers: tuple[int, ...], brokers: tuple[int, ...]
) -> Iterator[tuple[float, Action, int]]:
    groups = (controllers, brokers, (*controllers, *brokers))
    free_at_s = dict.fromkeys(groups[-1], 0.0)
    at_s = FIRST_S
    while at_s < seconds - LAST_S:
        action = random.choices(HURTS, HURT_WEIGHTS)[0]
        group = random.choice(groups)
        count = random.choices((1, 2, len(group)), (12, 4, 1))[0]
        victims = random.sample(group, count)
        lasts_s = random.uniform(*random.choices(DURATIONS_S, DURATION_WEIGHTS)[0])
        for node_id in victims:
            if free_at_s[node_id] > at_s:
                continue
            end_s = min(seconds, at_s + lasts_s)
            yield at_s, action, node_id
            yield end_s, ENDS[action], node_id
            free_at_s[node_id] = end_s
        at_s += random.uniform(*random.choice(PAUSES_S))
