"""The loss of a whole quorum, with which some seeds end.

Directories of controllers are wiped, or unavailable together with their machines. An operator
rebuilds the quorum from the other directories. Then the unavailable machines come back with their
old data.

If there are partitions, one node with all committed records is always left. A quorum that is
rebuilt without these records may elect a replica that lacks records, and then nothing is promised.
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
"""One of so many seeds ends with the loss of the quorum."""
CALLS_OF_THE_TOOL = 150
MOST_NEW = 3


def is_lost(random: Random) -> bool:
    return random.randrange(0, ONE_IN) == 0


async def lose_quorum(stage: Simulation, random: Random) -> None:
    """Lose the quorum and rebuild it. Afterwards every machine runs."""
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
    """Wait until no disk fails, all damage is repaired, and every broker that lost unsynced data
    has left the ISRs."""
    stage.faults.heal()
    stage.faults.heal()  # the end of a fault may have begun another one
    machines = stage.cluster.machines.values()

    def all_run() -> bool:
        running = all(each.process is not None for each in machines)
        return running and all(map(stage.cluster.is_registered, stage.cluster.brokers))

    await stage.until(all_run, "all run, brokers are registered", LIVENESS_S)
    await asyncio.sleep(2 * CHECK_UP_S)
    await stage.until(all_run, "all run, brokers are registered", LIVENESS_S)


def survivors(stage: Simulation, random: Random, dead: Sequence[Machine]) -> list[Machine]:
    """Return the machines whose directories the operator has: the brokers that do not run, and
    fewer controllers than could elect a leader. If none of these has all committed records, a
    controller that has them is added."""
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
