"""Scripted failures of the whole cluster, each in the order that does the most harm.

Each script ends with the final checks: the healed cluster works, and no promise is broken. The
ablations run the scripts on a cluster without one safeguard, and then they must fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.sim.run import PLACES, Simulation
from tests.sim.scripts.staging import (
    DATA,
    cluster_leads,
    cut,
    healed,
    is_unfenced,
    isolate,
    knows,
    leader,
    proposes,
    settled,
    writes_some,
)
from tests.sim.world.cluster import Machine, Shape

Scenario = Callable[[Simulation], Coroutine[Any, Any, None]]
PATIENT = Shape(overrides={"broker.session.timeout.ms": "9000"})
HINTED_S = 0.5
"""The longest effect of a crash if hints work. Every timeout of these clusters is longer."""


# -- failures that production sees ---------------------------------------------------------------


async def broker_killed(stage: Simulation) -> None:
    """Kill a leader. Its partitions accept writes again long before its session ends."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    victim = leader(stage)
    stage.cluster.kill(victim)
    await stage.until(lambda: stage.leader_of(DATA) not in (victim, None), "fenced", HINTED_S)
    start_s = stage.loop.time()
    await writes_some(stage, producer, PLACES)
    assert stage.loop.time() - start_s < HINTED_S
    await healed(stage)


async def controller_killed(stage: Simulation) -> None:
    await settled(stage)
    stage.producer("p1", PLACES)
    victim = stage.active()
    stage.cluster.kill(victim)
    await stage.until(lambda: len(stage.cluster.active_controllers()) == 1, "takeover", HINTED_S)
    await stage.admin.spawn(stage.admin.create_surely("more", 1))
    await healed(stage)


async def both_killed(stage: Simulation) -> None:
    """Kill the active controller and a broker. The new controller never had a link to the dead
    broker, so it has to probe it."""
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    victim = leader(stage)
    stage.cluster.kill(stage.active())
    stage.cluster.kill(victim)
    await stage.until(
        lambda: stage.leader_of(DATA) not in (victim, None), "fenced by probe", 3 * HINTED_S
    )
    await writes_some(stage, producer, PLACES)
    await healed(stage)


async def zombie_leader(stage: Simulation) -> None:
    """Cut a leader off from the controllers, but not from its clients and followers. It must not
    acknowledge records that it accepted but could not commit."""
    await settled(stage)
    producer = stage.producer("p1", [DATA], pace_s=0.02)
    await writes_some(stage, producer, [DATA])
    zombie = leader(stage)
    cut(stage, [zombie], stage.cluster.controllers)
    cut(stage, stage.cluster.controllers, [zombie])
    for other in stage.cluster.brokers:
        if other is not zombie:
            stage.cluster.network.block(producer.name, other.name)
    await stage.until(lambda: stage.leader_of(DATA) not in (zombie, None), "fenced", 5)
    other_producer = stage.producer("p2", [DATA])
    await writes_some(stage, other_producer, [DATA])
    await asyncio.sleep(2)
    await healed(stage)


async def paused_leader(stage: Simulation) -> None:
    """Pause a leader for longer than its session. When it continues, it believes that it leads."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    victim = leader(stage)
    assert victim.process is not None
    host = victim.process.host
    host.pause()
    await stage.until(lambda: stage.leader_of(DATA) not in (victim, None), "fenced", 5)
    await writes_some(stage, producer, [DATA])
    host.resume()
    await asyncio.sleep(0.5)
    await healed(stage)


async def all_killed(stage: Simulation) -> None:
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    await writes_some(stage, producer, PLACES)
    for machine in stage.cluster.machines.values():
        (stage.cluster.kill if machine.is_broker else stage.cluster.lose_power)(machine)
    await asyncio.sleep(1)
    await healed(stage)


async def broker_restarted_at_once(stage: Simulation) -> None:
    """Restart a broker immediately. Another incarnation replaces the session that is still valid
    (Kafka refuses it for 9 s)."""
    await settled(stage)
    stage.producer("p1", PLACES)
    await asyncio.sleep(0.5)
    victim = leader(stage)
    stage.cluster.kill(victim)
    stage.cluster.start(victim)
    await stage.until(stage.all_serve, "all serve", 2 * HINTED_S)
    await healed(stage)


async def hints_lie(stage: Simulation) -> None:
    """Close every link of a living leader and refuse new ones. A node has no better evidence of a
    death, and here it is false. The leader is deposed without need and comes back, and no record is
    lost."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    cluster, victim = stage.cluster, leader(stage)
    for name in cluster.machines:
        if name != victim.name:
            cluster.network.refuse(name, victim.name)
            cluster.network.break_links(name, victim.name)
    await stage.until(lambda: stage.leader_of(DATA) not in (victim, None), "deposed", HINTED_S)
    await writes_some(stage, producer, PLACES)
    await asyncio.sleep(1)
    await healed(stage)


# -- one safeguard each --------------------------------------------------------------------------


async def created_while(stage: Simulation, slow: Machine, cut_off: Machine) -> None:
    """Create a topic while the disk of `slow` hardly works and `cut_off` is isolated.

    Then the other two controllers die, and `slow` also loses its unsynced data. `slow` comes back,
    and the controller with the good disk does not."""
    cluster = stage.cluster
    isolate(stage, cut_off)
    slow.disk_delay_s = 3
    await asyncio.sleep(0.2)
    (good,) = (each for each in cluster.controllers if each not in (slow, cut_off))
    created = stage.admin.spawn(stage.admin.create_once("created", 1))
    await asyncio.wait([created], timeout=0.7)
    cluster.kill(good)
    cluster.lose_power(slow, forgetful=True)
    slow.disk_delay_s = 0
    cluster.network.heal()
    cluster.start(slow)
    await stage.until(lambda: len(cluster.active_controllers()) == 1, "takeover", 10)
    await healed(stage)


async def leader_disk_slow(stage: Simulation) -> None:
    """Check that the leader's own copy counts only when it is durable."""
    await settled(stage)
    active = stage.active()
    others = [each for each in stage.cluster.controllers if each is not active]
    await created_while(stage, active, others[0])


async def follower_disk_slow(stage: Simulation) -> None:
    """Check that a follower flushes before it fetches, because its Fetch is an acknowledgement."""
    await settled(stage)
    slow, cut_off = (c for c in stage.cluster.controllers if c is not stage.active())
    await created_while(stage, slow, cut_off)


async def vote_forgotten(stage: Simulation) -> None:
    """Cut the power between a vote and its fsync. The voter must not vote again in that epoch."""
    cluster = stage.cluster
    *pair, third = cluster.controllers
    isolate(stage, third)
    for machine in pair:
        machine.disk_delay_s = 0.1
        cluster.start(machine)
    cluster.start(third)
    await stage.until(lambda: stage.invariants.raft_epochs > 0, "somebody leads", 20)
    voter = next(each for each in pair if not cluster_leads(each))
    (winner,) = (each for each in pair if each is not voter)
    isolate(stage, winner)
    cluster.lose_power(voter)
    voter.disk_delay_s = 0
    for a, b in ((voter, third), (third, voter)):
        cluster.network.unblock(a.name, b.name)
    cluster.start(voter)
    await stage.until(lambda: cluster_leads(voter) or cluster_leads(third), "another leads", 20)
    for broker in cluster.brokers:
        cluster.start(broker)
    await healed(stage)


async def divergent_tail(stage: Simulation) -> None:
    """Kill a leader with records that no other replica has. It comes back after the log has
    continued without them."""
    await settled(stage)
    old = leader(stage)
    cut(stage, stage.followers_of(DATA), [old])
    loose = stage.producer("loose", [DATA], acks=1, idempotent=False, pace_s=0.01)
    await asyncio.sleep(0.3)
    stage.cluster.kill(old)
    stage.cluster.network.heal()
    await stage.until(lambda: stage.leader_of(DATA) not in (old, None), "elected", 5)
    await loose.stop()
    stage.producer("p1", [DATA], pace_s=0.01)
    tail = stage.history.of("loose", DATA).sent
    await stage.until(lambda: stage.history.acknowledged > tail, "the log goes on", 20)
    await healed(stage)


async def read_before_committed(stage: Simulation) -> None:
    """Let a consumer read from a leader whose followers do not fetch. Then this leader dies."""
    await settled(stage)
    old = leader(stage)
    reader = stage.consumer("reader")
    reader.start([DATA], 0.02)
    cut(stage, stage.followers_of(DATA), [old])
    stage.producer("loose", [DATA], acks=1, idempotent=False, pace_s=0.01)
    await asyncio.sleep(0.5)
    stage.cluster.kill(old)
    await asyncio.sleep(0.5)
    await healed(stage)


async def followers_are_read(stage: Simulation) -> None:
    """Let a consumer read from a follower that no longer gets the leader's high watermark. Then the
    leader dies."""
    await settled(stage)
    old = leader(stage)
    reader = stage.consumer("reader")
    reader.start([DATA], 0.01)
    producer = stage.producer("p1", [DATA], pace_s=0.02)
    reads = stage.coverage["reads of records from followers"]
    await stage.until(
        lambda: stage.coverage["reads of records from followers"] > reads + 5, "reads", 5
    )
    cut(stage, stage.followers_of(DATA)[:1], [old])
    stage.producer("loose", [DATA], acks=1, idempotent=False, pace_s=0.01)
    await asyncio.sleep(0.5)
    stage.cluster.kill(old)
    await writes_some(stage, producer, [DATA])
    await healed(stage)


async def shrink_unanswered(stage: Simulation) -> None:
    """Let a leader without a connection to the controllers shrink its ISR. The controller has not
    removed the follower, and may elect it."""
    await settled(stage)
    old = leader(stage)
    kept, dropped = stage.followers_of(DATA)
    cut(stage, [old], stage.cluster.controllers)
    cut(stage, stage.cluster.controllers, [old])
    cut(stage, [dropped], [old])
    producer = stage.producer("p1", [DATA], pace_s=0.02)
    await asyncio.sleep(3.5)  # longer than replica.lag.time.max.ms
    stage.cluster.kill(kept)
    stage.cluster.kill(old)
    stage.cluster.network.heal()
    await stage.until(lambda: stage.leader_of(DATA) is dropped, "the dropped one leads", 10)
    await asyncio.sleep(0.2)
    producer.stopping = True
    await healed(stage)


async def joined_as_another(stage: Simulation) -> None:
    """Cut the power of a follower that has caught up, while the proposal to add it to the ISR is in
    flight. It loses its data (KIP-903)."""
    await settled(stage)
    cluster, old = stage.cluster, leader(stage)
    kept, joining = stage.followers_of(DATA)
    cluster.kill(joining)
    await stage.until(lambda: joining.id not in stage.isr_of(DATA), "out of the ISR", 5)
    producer = stage.producer("p1", [DATA], pace_s=0.02)
    await writes_some(stage, producer, [DATA])
    cut(stage, [joining], [old])
    cluster.start(joining)
    await stage.until(stage.all_serve, "unfenced", 5)
    await stage.until(lambda: knows(old, joining), "the leader knows", 5)
    cut(stage, [old], cluster.controllers)
    cluster.network.unblock(joining.name, old.name)
    await stage.until(lambda: proposes(old, joining), "proposed", 5)
    cluster.lose_power(joining, forgetful=True)
    cut(stage, [joining], [old, kept])
    cluster.start(joining)
    await stage.until(lambda: is_unfenced(stage, joining), "registered anew", 10)
    for controller in cluster.controllers:
        cluster.network.unblock(old.name, controller.name)
    await asyncio.sleep(0.3)
    cluster.kill(kept)
    cluster.kill(old)
    await asyncio.sleep(1)
    producer.stopping = True
    await healed(stage)


async def answers_lost(stage: Simulation) -> None:
    """Block all answers to a producer, so that it sends everything again."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    for broker in stage.cluster.brokers:
        stage.cluster.network.block(broker.name, producer.name)
    await asyncio.sleep(2.5)
    await healed(stage)


async def alone_in_the_isr(stage: Simulation) -> None:
    """Kill all followers, and then cut the power of the leader. With min.insync.replicas=2 it has
    acknowledged nothing alone."""
    await settled(stage)
    old = leader(stage)
    for follower in stage.followers_of(DATA):
        stage.cluster.kill(follower)
    await stage.until(lambda: stage.isr_of(DATA) == (old.id,), "alone", 5)
    producer = stage.producer("p1", [DATA], pace_s=0.02)
    await asyncio.sleep(1)
    stage.cluster.lose_power(old, forgetful=True)
    await asyncio.sleep(0.2)
    producer.stopping = True
    await healed(stage)


async def power_lost_in_the_isr(stage: Simulation) -> None:
    """Cut the power of a member of the ISR. It is back without its page cache before any node
    notices, and must not be elected when the others die."""
    await settled(stage)
    producer = stage.producer("p1", [DATA], pace_s=0.02)
    await stage.until(lambda: stage.history.acknowledged > 50, "some data", 5)
    old, (kept, victim) = leader(stage), stage.followers_of(DATA)
    stage.cluster.lose_power(victim, forgetful=True)
    cut(stage, [victim], [old, kept])
    stage.cluster.start(victim)
    await stage.until(lambda: is_unfenced(stage, victim), "back", 10)
    stage.cluster.kill(kept)
    stage.cluster.kill(old)
    await asyncio.sleep(1)
    producer.stopping = True
    await healed(stage)


SHAPES: dict[Scenario, Shape] = {
    power_lost_in_the_isr: Shape(replication_port=9094),
    followers_are_read: Shape(
        overrides={"replica.selector.class": "quorate.LeastLoadedReplicaSelector"}
    ),
    shrink_unanswered: PATIENT,
    joined_as_another: PATIENT,
    broker_restarted_at_once: PATIENT,
    broker_killed: PATIENT,
    both_killed: PATIENT,
    hints_lie: PATIENT,
}
"""The scenarios that need another cluster than the usual one."""
