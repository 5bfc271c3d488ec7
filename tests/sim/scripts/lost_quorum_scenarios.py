"""Scripts of quorums that are lost, and rebuilt offline from the directories that are left.

A node whose directory was given to the tool starts again with the result of the tool. Every other
node comes back with the data that it had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quorate.quorum.ids import NO_NODE
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NoOpRecord
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.offline.force_voters import Plan
from tests.sim.checks.superseded import SupersededControllers
from tests.sim.clients.admin import Admin
from tests.sim.faults.rebuild import Operator, reconfigure
from tests.sim.run import LIVENESS_S, PLACES, Simulation
from tests.sim.scripts.quorum_scenarios import changed
from tests.sim.scripts.staging import cluster_leads, cut, healed, isolate, settled, writes_some
from tests.sim.world.cluster import Machine, generation_of

OUTSTANDING_S = 2.0
"""After this time, every request that was in flight has its answer, or never gets one."""
PATIENCE_S = 3.0
"""The time of several election timeouts and of retries of handshakes."""


async def all_die(stage: Simulation, *, wiped: Sequence[Machine] = ()) -> None:
    """Kill all nodes, wipe some directories, and wait until all requests have timed out."""
    for machine in stage.cluster.machines.values():
        if machine.process is not None:
            stage.cluster.kill(machine)
    for machine in wiped:
        stage.cluster.wipe(machine, formatted=False)
    await asyncio.sleep(OUTSTANDING_S)


async def serve_again(stage: Simulation, *machines: Machine) -> None:
    for machine in machines:
        stage.cluster.start(machine)
    await stage.until(stage.all_serve, "all serve", 10)


def formatted_anew(stage: Simulation, *machines: Machine) -> None:
    """Format the machines as new controllers, which follow the rebuilt quorum."""
    for machine in machines:
        if machine.process is not None:
            stage.cluster.kill(machine)
        reconfigure(stage.cluster, machine)
        stage.cluster.wipe(machine)


async def brokers_bring_the_quorum_back(stage: Simulation) -> None:
    """Rebuild the quorum from brokers, because all directories of controllers are lost."""
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    await writes_some(stage, producer, PLACES)
    cluster = stage.cluster
    await all_die(stage, wiped=cluster.controllers)
    first, *others = cluster.controllers
    Operator(stage).rebuild(cluster.brokers, [first])
    formatted_anew(stage, *others)
    await serve_again(stage, first, *cluster.brokers)
    for other in others:
        cluster.start(other)
        await changed(stage, add=other)
    await healed(stage)
    await stage.caught_up()


async def old_majority_comes_back(stage: Simulation, *, alive: bool = True) -> None:
    """Rebuild the quorum while two of three controllers are only cut off.

    The operator believes that they are lost, but they continue alone. When they are back, no node
    of the rebuilt quorum accepts them. After a restart with their old directories they elect no
    leader."""
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    await writes_some(stage, producer, PLACES)
    cluster = stage.cluster
    mine, *old = cluster.controllers
    cut_off(stage, old)
    lost = [mine, *cluster.brokers]
    for machine in lost:
        cluster.kill(machine)
    await asyncio.sleep(PATIENCE_S)
    assert any(cluster_leads(each) for each in old), "the old majority lives"
    planned = Operator(stage).rebuild(lost, [mine])
    await serve_again(stage, *lost)
    await writes_some(stage, producer, PLACES)
    cluster.network.heal()
    await asyncio.sleep(PATIENCE_S)
    assert stage.all_serve()
    for machine in old:
        cluster.kill(machine)
    for machine in old:
        cluster.start(machine)
    await refused(stage, old, planned)
    await join_anew(stage, old)


async def old_controllers_come_back(stage: Simulation) -> None:
    """Repair two controllers after their quorum was rebuilt. With their old directories they are a
    majority of the old quorum."""
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    await writes_some(stage, producer, PLACES)
    cluster = stage.cluster
    mine, *old = cluster.controllers
    await all_die(stage)
    planned = Operator(stage).rebuild([mine, *cluster.brokers], [mine])
    await serve_again(stage, mine, *cluster.brokers)
    for machine in old:
        cluster.start(machine)
    await refused(stage, old, planned)
    await join_anew(stage, old)


async def longest_is_not_latest(stage: Simulation) -> None:
    """Let a leader without followers append many records. The logs of the brokers are shorter, but
    they have committed records of the next epoch."""
    await settled(stage)
    cluster, old = stage.cluster, stage.active()
    others = [each for each in cluster.controllers if each is not old]
    isolate(stage, old)
    assert old.process is not None
    for _ in range(20):
        old.process.core.replica.append([encode_record(NoOpRecord())])
    await stage.until(lambda: any(map(cluster_leads, others)), "another leads", 10)
    await stage.until(lambda: len(cluster.active_controllers()) == 1, "and rules", 10)
    await stage.admin.spawn(stage.admin.create_surely("committed", 1))
    offset = stage.invariants.image.last.offset
    await stage.until(
        lambda: all(
            each.process is not None and each.process.core.image.last.offset >= offset
            for each in cluster.brokers
        ),
        "the brokers know",
        5,
    )
    await all_die(stage, wiped=others)
    cluster.network.heal()
    planned = Operator(stage).rebuild([old, *cluster.brokers], [old])
    (comparison,) = (each for each in planned.others if each.source.directory == old.config.log_dir)
    assert len(comparison.surplus) >= 20 and comparison.never_committed
    await serve_again(stage, old, *cluster.brokers)
    await join_anew(stage, others)


async def old_majority_goes_on_voting(stage: Simulation) -> None:
    """Let the old majority elect one leader after the other. None of their epochs may be one of the
    rebuilt quorum."""
    await settled(stage)
    cluster = stage.cluster
    mine, *old = cluster.controllers
    cut_off(stage, old)
    for machine in (mine, *cluster.brokers):
        cluster.kill(machine)
    for _ in range(3):
        await stage.until(lambda: any(map(cluster_leads, old)), "one of them leads", 10)
        (leading,) = filter(cluster_leads, old)
        cluster.kill(leading)
        cluster.start(leading)
    await stage.until(lambda: any(map(cluster_leads, old)), "one of them leads", 10)
    Operator(stage).rebuild([mine, *cluster.brokers], [mine])
    await serve_again(stage, mine, *cluster.brokers)
    for _ in range(10):  # the rebuilt quorum elects one leader after the other, too
        cluster.kill(mine)
        await serve_again(stage, mine)
    for machine in old:
        cluster.kill(machine)
    cluster.network.heal()
    await join_anew(stage, old)


async def the_power_goes_while_the_tool_runs(stage: Simulation) -> None:
    """Cut the power at different calls of the tool, and run the tool again each time."""
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    cluster, operator = stage.cluster, Operator(stage)
    controllers = cluster.controllers
    for cut_at in (1, 20, 60, 90, 100, 110, 120):
        await writes_some(stage, producer, PLACES)
        await all_die(stage, wiped=controllers[1:])
        operator.rebuild([controllers[0], *cluster.brokers], controllers[:2], cut_at=cut_at)
        formatted_anew(stage, controllers[2])
        await serve_again(stage, *cluster.machines.values())
    await healed(stage)
    await stage.caught_up()


async def nobody_left_knows(stage: Simulation) -> None:
    """Rebuild the quorum after the loss of all nodes with the last change. This change is gone, and
    everything before it is there."""
    await settled(stage)
    cluster = stage.cluster
    admin = at_controllers(stage)
    await create(stage, admin, "there")
    await stage.caught_up()
    cut_off(stage, cluster.brokers)
    await create(stage, admin, "gone")
    await all_die(stage, wiped=cluster.controllers)
    cluster.network.heal()
    first, *others = cluster.controllers
    planned = Operator(stage).rebuild(cluster.brokers, [first])
    assert planned.chosen.image.topic("there") and not planned.chosen.image.topic("gone")
    await serve_again(stage, first, *cluster.brokers)
    await create(stage, admin, "gone")
    await join_anew(stage, others)


async def a_broker_that_runs_has_more(stage: Simulation) -> None:
    """Rebuild the quorum without a running broker that has more committed records.

    This broker does not join the rebuilt quorum. The operator follows its instructions, and runs
    the tool again: with the directory of this broker, and without the metadata of the nodes of the
    rebuilt quorum. Then all committed records are back."""
    await settled(stage)
    cluster, operator, admin = stage.cluster, Operator(stage), at_controllers(stage)
    ahead, *behind = cluster.brokers
    await stage.caught_up()
    cut_off(stage, behind)
    await create(stage, admin, "known_to_one")
    await stage.until(lambda: bool(image_of(ahead).topic("known_to_one")), "it is known", 1)
    for machine in (*cluster.controllers, *behind):
        cluster.kill(machine)
    for controller in cluster.controllers:
        cluster.wipe(controller, formatted=False)
    cluster.network.heal()
    await asyncio.sleep(OUTSTANDING_S)
    first, *others = cluster.controllers
    operator.rebuild(behind, [first])
    for machine in (first, *behind):
        cluster.start(machine)
    await asyncio.sleep(PATIENCE_S)
    assert stage.active() is first and all(map(generation_of, behind))
    assert generation_of(ahead) == 0, "it gave up what was committed"
    for machine in (first, *cluster.brokers):
        cluster.kill(machine)
    for machine in (first, *behind):
        machine.disk = machine.disk.restart()
        machine.disk.remove_tree(f"{machine.config.log_dir}/{METADATA_DIRECTORY}")
        machine.disk.sync_dir(machine.config.log_dir)
    operator.rebuild([first, *cluster.brokers], [first])
    await serve_again(stage, first, *cluster.brokers)
    assert image_of(first).topic("known_to_one")
    await join_anew(stage, others)


# -- parts ---------------------------------------------------------------------------------------


def at_controllers(stage: Simulation) -> Admin:
    """Return an administrator that asks controllers, not brokers."""
    admin = Admin(stage.cluster, stage.history, "direct", stage.cluster.controller_addresses())
    stage.clients.append(admin)
    return admin


def image_of(machine: Machine) -> MetadataImage:
    assert machine.process is not None
    return machine.process.core.image


async def create(stage: Simulation, admin: Admin, name: str) -> None:
    """Create a topic. Repeat the request until the topic is committed."""
    for _ in range(100):
        await admin.spawn(admin.create_once(name, 1))
        if stage.invariants.image.topic(name) is not None:
            return
    raise AssertionError(f"{name} cannot be created")


def cut_off(stage: Simulation, machines: Sequence[Machine]) -> None:
    """Cut the machines off from all others."""
    others = [each for each in stage.cluster.machines.values() if each not in machines]
    cut(stage, machines, others)
    cut(stage, others, machines)


async def refused(stage: Simulation, old: Sequence[Machine], planned: Plan) -> None:
    """Check that the old controllers elect no leader, although they run for long enough.

    No node of the rebuilt quorum accepts them, except for a controller whose directory is as good
    as newly formatted. If the path to the rebuilt quorum is long, they may elect a leader before
    they meet it. Then their quorum still works (rule 12 of
    docs/protocol/rebuilding-a-quorum.md)."""
    end_s = stage.loop.time() + PATIENCE_S
    members = [each for each in old if has_a_past(each)]
    superseded = SupersededControllers(members)
    while stage.loop.time() < end_s:
        superseded.check()
        leading = [each.name for each in old if cluster_leads(each)]
        may_lead = stage.cluster.shape.distances
        assert may_lead or not leading, f"{leading} lead the quorum that was rebuilt without them"
        for each in members:
            assert each.process is not None
            epoch = each.process.core.replica.raft.epoch
            assert epoch < planned.quorum.epoch, f"{each.name} of the old quorum was let in"
        await asyncio.sleep(0.02)
    # A broker may first take the restarted process of the old leader for a quorum that works.
    await stage.until(stage.all_serve, "all serve", LIVENESS_S)


def has_a_past(machine: Machine) -> bool:
    """Return True if the controller could elect a leader of the old quorum, or count as a voter
    there."""
    assert machine.process is not None
    core = machine.process.core
    return core.log.end_offset > 0 or core.replica.raft.voted_id != NO_NODE


async def join_anew(stage: Simulation, old: Sequence[Machine]) -> None:
    """Format the machines and add them as voters, as their error messages demand."""
    formatted_anew(stage, *old)
    for machine in old:
        stage.cluster.start(machine)
        await changed(stage, add=machine)
    await healed(stage)
    await stage.caught_up()
