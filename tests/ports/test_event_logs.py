"""The events of each kind of failure are in the logs of the nodes, once and with their cause."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator

import pytest

from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from tests.ports.node import PortCluster, running
from tests.sim.world.cluster import Machine

PARTITIONS = 46


@pytest.fixture
def cluster(caplog: pytest.LogCaptureFixture) -> Iterator[PortCluster]:
    """Three controllers and three brokers with a topic of PARTITIONS partitions."""
    caplog.set_level(logging.INFO)
    with running(controllers=3, brokers=3) as started:
        raw = started.connect(started.broker_port)
        topic = CreatableTopic(
            name="orders",
            num_partitions=PARTITIONS,
            replication_factor=3,
            assignments=(),
            configs=(),
        )
        started.ask(raw, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
        started.run(3.0)
        raw.link.abort()
        yield started


def events(caplog: pytest.LogCaptureFixture, kind: str) -> list[str]:
    """Return the lines of one kind of event since the last `clear`."""
    return of_kind(caplog.records, kind)


def of_kind(records: Iterable[logging.LogRecord], kind: str) -> list[str]:
    """Return the lines of one kind of event."""
    return [each.getMessage() for each in records if getattr(each, "event", None) == kind]


def last_broker(cluster: PortCluster) -> Machine:
    return cluster.cluster.brokers[-1]


def active(cluster: PortCluster) -> Machine:
    (found,) = cluster.cluster.active_controllers()
    return found


@pytest.mark.usefixtures("cluster")
def test_a_start_says_who_listens_registers_and_leads(caplog: pytest.LogCaptureFixture) -> None:
    def started(kind: str) -> list[str]:
        return of_kind(caplog.get_records("setup"), kind)

    assert len(started("listening")) == 3 + 2 * 3
    chosen = [line for line in started("listening") if "The system chose this free port" in line]
    assert len(chosen) == 3
    assert all(line.startswith("listening on REPLICATION://b") for line in chosen)
    assert not any(":0 " in line for line in chosen)
    assert len(started("election-won")) == len(started("controller-activated")) == 1
    assert len(started("leader-followed")) >= 5
    for kind in ("broker-registered", "broker-unfenced"):
        assert len(started(kind)) == 3, "each one once, on the active controller"
    (created,) = started("topics-created")
    assert created.startswith("created 1 topic: orders (offsets ")
    taken = [each for each in started("roles-taken") if "It now leads 1" in each]
    assert len(taken) == 3


def test_kill_9_of_a_broker(cluster: PortCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    victim = last_broker(cluster)
    cluster.cluster.kill(victim)
    cluster.run(3.0)
    (fenced,) = events(caplog, "broker-fenced")
    assert fenced.startswith(f"fenced broker {victim.id} (epoch ")
    assert "[connection-lost]" in fenced
    (moved,) = events(caplog, "leaders-moved")
    assert f"from broker {victim.id} to broker" in moved
    assert "[connection-lost]" in moved
    assert len([e for e in events(caplog, "roles-taken") if "It now leads" in e]) >= 2
    caplog.clear()
    cluster.cluster.start(victim)
    cluster.run(5.0)
    (again,) = events(caplog, "broker-registered")
    assert again.startswith(f"broker {victim.id} registered again")
    assert len(events(caplog, "broker-unfenced")) == 1


def test_a_paused_broker(cluster: PortCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    process = last_broker(cluster).process
    assert process is not None
    process.host.pause()
    cluster.run(30.0)
    (fenced,) = events(caplog, "broker-fenced")
    assert "No heartbeat came for broker.session.timeout.ms. [session-expired]" in fenced
    (moved,) = events(caplog, "leaders-moved")
    assert "[session-expired]" in moved
    process.host.resume()


def test_an_orderly_stop(cluster: PortCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    cluster.cluster.stop(last_broker(cluster))
    cluster.run(10.0)
    assert len(events(caplog, "broker-shutdown")) == 1
    assert "[controlled-shutdown]" in events(caplog, "leaders-moved")[0]


def test_kill_9_of_the_active_controller(
    cluster: PortCluster, caplog: pytest.LogCaptureFixture
) -> None:
    victim = active(cluster)
    caplog.clear()
    cluster.cluster.kill(victim)
    cluster.run(8.0)
    campaigns = events(caplog, "pre-vote-started")
    assert campaigns
    assert all(f"leader {victim.id} of epoch " in each for each in campaigns)
    assert events(caplog, "election-won")
    (activated,) = events(caplog, "controller-activated")
    assert "at offset" in activated


def test_an_isolated_controller_is_deposed_and_its_events_are_not_reported(
    cluster: PortCluster, caplog: pytest.LogCaptureFixture
) -> None:
    old = active(cluster)
    for machine in cluster.cluster.machines.values():
        if machine is not old:
            cluster.cluster.network.block(old.name, machine.name)
            cluster.cluster.network.block(machine.name, old.name)
    caplog.clear()
    cluster.run(30.0)
    assert len(events(caplog, "leader-resigned")) == 1
    assert len(events(caplog, "controller-deactivated")) == 1
    assert len(events(caplog, "controller-activated")) == 1
    assert events(caplog, "broker-fenced") == [], "what the old one decided was never committed"


def test_a_lost_quorum(cluster: PortCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    left, *victims = cluster.cluster.controllers
    for victim in victims:
        cluster.cluster.kill(victim)
    cluster.run(20.0)
    waiting = events(caplog, "not-ready")
    for each in victims:
        assert re.search(rf"{each.id} at {each.name}:\d+: connection refused", waiting[0])
    assert "the metadata quorum is lost, as node 1 sees it: it reaches 1 of 3 voters" in waiting[0]
    assert len(waiting) <= 4 * 3, "three lines of each node that runs: after 3, 6 and 12 s"
    cluster.cluster.kill(left)
    caplog.clear()
    cluster.run(60.0)
    assert any(
        "no controller is reachable at 1 at c1:" in each for each in events(caplog, "not-ready")
    )
