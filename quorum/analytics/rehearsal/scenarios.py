"""The scenarios of a rehearsal. Each is a generator that makes faults and yields what it waits for:
a time in ms, or a condition. The table SCENARIOS names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from quorate.quorum.analytics.rehearsal.assumptions import drawn
from quorate.quorum.analytics.rehearsal.virtual_cluster import VirtualCluster

Wait = int | Callable[[], bool]
"""A time in ms, or a function that returns True when the scenario may go on."""
Steps = Iterator[Wait]
BETWEEN_MS = (0, 200)
"""The time between the deaths of two brokers that are lost together."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario: its steps for a cluster and the ids of the brokers that it concerns.

    `of_all` is true if it concerns all brokers unless some are named. Other scenarios concern one
    broker or one rack then, which the seed chooses."""

    steps: Callable[[VirtualCluster, tuple[int, ...]], Steps]
    text: str
    of_rack: bool = False
    of_all: bool = False


def kill(cluster: VirtualCluster, brokers: tuple[int, ...]) -> Steps:
    """Kill the brokers. They never return."""
    plan = [(at_ms, each, cluster.kill) for at_ms, each in _deaths(cluster, brokers)]
    yield from _in_order(plan)


def kill_and_return(cluster: VirtualCluster, brokers: tuple[int, ...]) -> Steps:
    """Kill the brokers, and start each of them again after its own time."""
    plan = []
    for at_ms, each in _deaths(cluster, brokers):
        restart_ms = drawn(cluster.random, cluster.assumptions.restart_ms)
        plan += [(at_ms, each, cluster.kill), (at_ms + restart_ms, each, cluster.start)]
    yield from _in_order(plan)


def rolling_restart(cluster: VirtualCluster, brokers: tuple[int, ...]) -> Steps:
    """Restart one broker after the other. Wait until it is in all its ISRs before the next."""
    for each in brokers:
        yield from _restart(cluster, each)
        yield partial(cluster.replicas.is_in_sync, each)


def hasty_restart(cluster: VirtualCluster, brokers: tuple[int, ...]) -> Steps:
    """Restart one broker after the other. Wait only until it is in service before the next."""
    for each in brokers:
        yield from _restart(cluster, each)
        yield partial(cluster.replicas.is_in_service, each)


def controller_failover(cluster: VirtualCluster, brokers: tuple[int, ...]) -> Steps:
    """Kill the brokers, which then return, while no controller is active."""
    cluster.fail_controller()
    yield from kill_and_return(cluster, brokers)


def _deaths(cluster: VirtualCluster, brokers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the times at which the brokers are killed, from now on, with their ids."""
    at_ms, deaths = 0, []
    for each in brokers:
        deaths.append((at_ms, each))
        at_ms += drawn(cluster.random, BETWEEN_MS)
    return deaths


def _in_order(plan: Sequence[tuple[int, int, Callable[[int], None]]]) -> Steps:
    """Call the functions of a plan with their brokers, each at its time from now on."""
    passed_ms = 0
    for at_ms, broker, fault in sorted(plan, key=itemgetter(0, 1)):
        yield at_ms - passed_ms
        passed_ms = at_ms
        fault(broker)


def _restart(cluster: VirtualCluster, broker: int) -> Steps:
    cluster.stop(broker)
    yield partial(cluster.is_down, broker)
    yield drawn(cluster.random, cluster.assumptions.restart_ms)
    cluster.start(broker)


SCENARIOS: dict[str, Scenario] = {
    "kill": Scenario(kill, "the brokers are killed and never return"),
    "kill-and-return": Scenario(kill_and_return, "the brokers are killed and come back"),
    "rack-loss": Scenario(
        kill_and_return, "all brokers of a rack are killed and come back", of_rack=True
    ),
    "rolling-restart": Scenario(
        rolling_restart,
        "one broker after the other restarts, when the last one is in all its ISRs again",
        of_all=True,
    ),
    "hasty-restart": Scenario(
        hasty_restart,
        "one broker after the other restarts, when the last one is unfenced again",
        of_all=True,
    ),
    "controller-failover": Scenario(
        controller_failover,
        "brokers are killed and come back while the active controller fails over",
    ),
}
