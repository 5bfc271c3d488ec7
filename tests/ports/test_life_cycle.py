"""The life of a change: its stages on every node, on virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorate.quorum.controller.state.messages import IsrChange
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.watch import life_cycle
from tests.ports.node import PortCluster, running
from tests.sim.world.cluster import Machine

TOPIC = "orders"
PARTITIONS = 6


def answer(cluster: PortCluster, machine: Machine, target: str) -> HttpResponse:
    """Return the response of a node to GET `target`, without a connection."""
    assert machine.process is not None
    process = machine.process
    task = cluster.loop.create_task(process.core.http_endpoints._dispatch.answer(target))
    cluster.until(task.done)
    return task.result()


def stages(cluster: PortCluster, machine: Machine, query: str = "") -> Any:
    return json.loads(answer(cluster, machine, f"/v1/stages{query}").body)


def changes(cluster: PortCluster, machine: Machine, query: str = "") -> list[dict[str, Any]]:
    body = answer(cluster, machine, f"/v1/recent-changes{query}").body
    return [json.loads(line) for line in body.splitlines()]


@pytest.fixture(scope="module")
def cluster() -> Iterator[PortCluster]:
    with running(controllers=3, brokers=3) as node:
        create(node, TOPIC, PARTITIONS)
        node.run(2.0)
        yield node


def leader_of(cluster: PortCluster) -> Machine:
    (active,) = cluster.cluster.active_controllers()
    return active


def test_the_stages_of_a_change_follow_each_other_on_every_replica(cluster: PortCluster) -> None:
    victim = cluster.cluster.brokers[-1]
    cluster.cluster.kill(victim)
    active = leader_of(cluster)
    cluster.until(lambda: len(changes(cluster, active)) >= PARTITIONS)
    cluster.run(1.0)
    found = changes(cluster, active)
    assert {each["partition"] for each in found} == set(range(PARTITIONS))
    survivors = [each for each in cluster.cluster.brokers if each is not victim]
    marked = {each.id: stages(cluster, each) for each in survivors}
    for each in found:
        assert each["topic"] == TOPIC
        assert victim.id not in each["change"]["isr"]
        assert each["cause"] in ("connection-lost", "session-expired")
        assert set(each["hosts"]) == {broker.id for broker in cluster.cluster.brokers}
        times = [each["requested_ms"], each["appended_ms"], each["committed_ms"]]
        for broker in survivors:
            assert marked[broker.id]["offsets"]["acted"] > each["offset"]
            own = [*times]
            for stage in ("replayed", "acted"):
                marks = marked[broker.id]["marks"][stage]
                own.append(next(at_ms for end, at_ms in marks if end > each["offset"]))
            assert own == sorted(own), "each stage begins after the one before"
    cluster.cluster.start(victim)
    cluster.until(cluster._serves)
    cluster.run(5.0)


def create(cluster: PortCluster, name: str, partitions: int) -> None:
    """Create a topic with three replicas of each partition."""
    raw = cluster.connect(cluster.broker_port)
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=3, assignments=(), configs=()
    )
    cluster.ask(raw, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
    raw.link.abort()


def test_a_broker_acts_on_a_change_when_its_logs_are_open(
    cluster: PortCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New logs are opened in slices of the event loop. Until the last one is open, the broker has
    not acted on the records that name them."""
    process = cluster.cluster.brokers[0].process
    assert process is not None and process.broker is not None
    applier = process.broker.replicas._applier
    before = applier.acted_offset
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(applier, "on_acted", lambda end: seen.append((end, applier.unopened)))
    create(cluster, "sliced", 40)
    cluster.until(lambda: seen and seen[-1][1] == 0 and seen[-1][0] > before + 40)
    held = [end for end, unopened in seen if unopened]
    assert len(held) >= 2
    assert max(held) <= before + 2, "the first record that names a closed log is not acted on"


def test_a_broker_that_does_not_act_shows_where_it_stays(cluster: PortCluster) -> None:
    """The disk's thread opens the logs that a start finds, and the replay goes on meanwhile."""
    create(cluster, "held", 40)
    cluster.run(2.0)
    slow = cluster.cluster.brokers[1]
    cluster.cluster.kill(slow)
    cluster.run(1.0)
    slow.disk_delay_s = 0.3
    cluster.cluster.start(slow)
    process = slow.process
    assert process is not None and process.broker is not None
    replicas = process.broker.replicas
    cluster.until(lambda: replicas.unopened > 0)
    offsets = stages(cluster, slow)["offsets"]
    assert offsets["replayed"] > offsets["acted"]
    slow.disk_delay_s = 0.0
    cluster.until(lambda: at_the_end(stages(cluster, slow)["offsets"]))
    cluster.until(cluster._serves)


def at_the_end(offsets: dict[str, int]) -> bool:
    return offsets["acted"] >= offsets["committed"] - 1


def test_the_controller_reports_its_queue_and_the_replay_of_each_broker(
    cluster: PortCluster,
) -> None:
    active = leader_of(cluster)
    cluster.run(3.0)
    part = stages(cluster, active)["controller"]
    assert part["active"] is True
    assert (part["queued"], part["oldest_ms"], part["uncommitted"]) == (0, 0, 0)
    assert {each["id"] for each in part["brokers"]} == {each.id for each in cluster.cluster.brokers}
    assert all(0 <= each["behind"] <= 2 and each["replayed"] > 0 for each in part["brokers"])
    standby = next(each for each in cluster.cluster.controllers if each is not active)
    assert stages(cluster, standby)["controller"]["brokers"] == []
    assert changes(cluster, standby) == []


def test_proposals_without_an_answer_are_listed_with_their_age(cluster: PortCluster) -> None:
    """The leader proposes a change while no controller can be reached."""
    leader = cluster.cluster.brokers[0]
    network = cluster.cluster.network
    network.partition([leader.name], [each.name for each in cluster.cluster.controllers])
    cluster.run(0.1)
    process = leader.process
    assert process is not None and process.broker is not None
    hosted = next(each for each in process.broker.replicas.registry if each.topic == TOPIC)
    change = IsrChange(
        topic_id=hosted.key[0],
        partition_id=hosted.key[1],
        leader_epoch=0,
        partition_epoch=0,
        isr=((leader.id, 1),),
        leader_recovery_state=0,
        cause=Cause.ISR_SHRINK_LAG,
    )
    results: list[object] = []
    assert process.broker.isr_sender.propose(change, results.append)
    cluster.run(2.0)
    waiting = stages(cluster, leader)["proposals"]
    (oldest,) = waiting["oldest"]
    assert (waiting["waiting"], waiting["in_flight"]) == (1, 1)
    assert waiting["oldest_ms"] == oldest["age_ms"] >= 2000
    assert (oldest["topic"], oldest["partition"]) == (TOPIC, hosted.key[1])
    assert (oldest["isr"], oldest["cause"]) == ([leader.id], "isr-shrink-lag")
    network.heal()
    cluster.until(lambda: results)
    after = stages(cluster, leader)["proposals"]
    assert (after["waiting"], after["oldest_ms"], after["oldest"]) == (0, 0, [])
    cluster.until(cluster._serves)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("stages?from=x", "from='x' is not a whole number"),
        ("stages?limit=3", "no parameter 'limit'"),
        ("recent-changes?limit=0", "limit='0' is not a whole number from 1"),
        ("recent-changes?types=A", "no parameter 'types'"),
    ],
)
def test_wrong_queries_are_refused(cluster: PortCluster, query: str, said: str) -> None:
    response = answer(cluster, cluster.cluster.controllers[0], f"/v1/{query}")
    assert response.status == 400
    assert said in response.body.decode()


def test_a_page_of_changes_is_bounded_and_names_the_next(cluster: PortCluster) -> None:
    active = leader_of(cluster)
    cluster.run(10.0)  # until no follower joins an ISR any more
    whole = changes(cluster, active)
    assert len(whole) > 2
    page = answer(cluster, active, "/v1/recent-changes?limit=2")
    assert page.body.count(b"\n") == 2
    following = dict(page.headers)["Quorate-Next-Offset"]
    assert changes(cluster, active, f"?from={following}") == whole[2:]


def test_many_changes_are_made_in_slices(
    cluster: PortCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(life_cycle, "LINES_PER_SLICE", 1)
    active = leader_of(cluster)
    expected = len(changes(cluster, active))
    with monkeypatch.context() as patched:
        patched.setattr("asyncio.sleep", pause)
        changes(cluster, active)
    assert pauses.count(0) >= expected > 2


def test_a_deposed_controller_keeps_no_change_that_may_be_replaced(cluster: PortCluster) -> None:
    """It is cut off with a change that it has appended and that no other voter has."""
    active = leader_of(cluster)
    before = changes(cluster, active)
    others = [each.name for each in cluster.cluster.controllers if each is not active]
    cluster.cluster.network.partition([active.name], others)
    cluster.cluster.kill(cluster.cluster.brokers[1])
    kept: Callable[[], int] = lambda: len(changes(cluster, active))  # noqa: E731
    cluster.until(lambda: kept() > len(before))
    cluster.until(lambda: leader_of_others(cluster, active))
    cluster.until(lambda: active.process and not active.process.controller.shell.active)  # type: ignore[union-attr]
    assert changes(cluster, active) == before


def leader_of_others(cluster: PortCluster, active: Machine) -> bool:
    return any(each is not active for each in cluster.cluster.active_controllers())
