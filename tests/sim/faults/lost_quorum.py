"""The loss of a whole quorum, with which some seeds end.

Directories are gone, or away with their machines. An operator rebuilds the quorum from the others.
Then the machines that were away come back with their old data.

If there are partitions, one node with all committed records is always left. A quorum that is
rebuilt without them may elect a replica that lacks records, and then nothing is promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from quorate.quorum.ids import EpochOffset
from quorate.quorum.offline.source_directories import read_source
from tests.sim.faults.damage import CHECK_UP_S
from tests.sim.faults.rebuild import Operator
from tests.sim.run import LIVENESS_S, Simulation
from tests.sim.scripts.lost_quorum_scenarios import (
    OUTSTANDING_S,
    formatted_anew,
    refused,
    serve_again,
)
from tests.sim.world.cluster import Machine

ONE_IN = 8
"""So many seeds."""
CALLS_OF_THE_TOOL = 150
MOST_NEW = 3


def is_lost(random: Random) -> bool:
    return random.randrange(0, ONE_IN) == 0


async def lose_quorum(stage: Simulation, random: Random) -> None:
    """And bring it back; afterwards everything runs."""
    cluster = stage.cluster
    stage.coverage["quorum lost for good"] += 1
    await mended(stage)
    dead = list(cluster.controllers)
    dead += [each for each in cluster.brokers if random.randrange(0, 3)]
    for machine in dead:
        cluster.kill(machine)
    for machine in cluster.controllers:
        if random.getrandbits(1):
            cluster.lose_power(machine)
    await asyncio.sleep(OUTSTANDING_S)
    given = survivors(stage, random, dead)
    others = [each for each in cluster.controllers if each not in given]
    wiped = [each for each in others if random.getrandbits(1)] or others[:1]
    for machine in wiped:
        cluster.wipe(machine, formatted=False)
    candidates = [each for each in (*given, *wiped) if not each.is_broker]
    new = random.sample(candidates, random.randrange(1, min(MOST_NEW, len(candidates)) + 1))
    cut_at = 0 if random.getrandbits(1) else random.randrange(1, CALLS_OF_THE_TOOL)
    planned = Operator(stage).rebuild(given, new, cut_at=cut_at)
    await serve_again(stage, *new, *(each for each in cluster.brokers if not each.process))
    rest = [each for each in cluster.controllers if each not in new]
    old = [each for each in rest if each not in wiped and not stage.electorate.is_alone(each)]
    for machine in old:
        cluster.start(machine)
    await refused(stage, old, planned)
    formatted_anew(stage, *rest)
    for machine in rest:
        cluster.start(machine)


async def mended(stage: Simulation) -> None:
    """No disk fails any more, what is damaged is repaired, and a broker that lost what it had not
    synced has left the ISRs."""
    stage.faults.heal()
    stage.faults.heal()  # also what followed from the end of a fault
    machines = stage.cluster.machines.values()

    def all_run() -> bool:
        running = all(each.process is not None for each in machines)
        return running and all(map(stage.cluster.is_registered, stage.cluster.brokers))

    await stage.until(all_run, "all run, brokers are registered", LIVENESS_S)
    await asyncio.sleep(2 * CHECK_UP_S)
    await stage.until(all_run, "all run, brokers are registered", LIVENESS_S)


def survivors(stage: Simulation, random: Random, dead: Sequence[Machine]) -> list[Machine]:
    """Whose directories the operator has: the brokers' that do not run, and those of fewer
    controllers than could elect a leader."""
    controllers = [each for each in dead if not each.is_broker]
    brokers = [each for each in dead if each.is_broker]
    random.shuffle(controllers)
    fewest = 0 if brokers else 1
    left = controllers[: random.randrange(fewest, max(fewest, (len(controllers) - 1) // 2) + 1)]
    ends = {each.name: end_of(each) for each in dead}
    committed = stage.invariants.metadata.end
    if stage.cluster.brokers and all(ends[each.name] < committed for each in (*left, *brokers)):
        left.append(next(each for each in controllers if ends[each.name] >= committed))
    return [*left, *brokers]


def end_of(machine: Machine) -> EpochOffset:
    machine.disk = machine.disk.restart()
    return read_source(machine.disk, machine.config.log_dir).end
