"""The view of operators on a real cluster: health, readiness, metrics, and the causes of faults."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorate.cli.nodes.cluster_dir import alive
from tests.clients.cluster import ProcessCluster, quorate, run_quorate, running, wait_for
from tests.clients.librdkafka import admin, create_topic, producer

pytestmark = pytest.mark.clients


def get(address: tuple[str, int], path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def targets(cluster: ProcessCluster, role: str) -> dict[int, tuple[str, int]]:
    """Return the HTTP addresses of the nodes, as Prometheus discovers them."""
    controller = cluster.entry()["controllers"][-1]
    _, body = get((controller["host"], controller["port"]), "/v1/targets")
    found = {}
    for each in json.loads(body):
        host, _, port = each["targets"][0].rpartition(":")
        if each["labels"]["role"] == role:
            found[int(each["labels"]["node_id"])] = (host, int(port))
    return found


def metrics(address: tuple[str, int]) -> dict[str, float]:
    """Samples without labels."""
    status, body = get(address, "/metrics")
    assert status == 200
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if not any(sample.labels.values())
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_a_broker_dies_and_comes_back_when_the_quorum_is_gone(
    own_cluster: ProcessCluster, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    create_topic(admin(own_cluster.bootstrap), topic, 3)
    client = producer(own_cluster.bootstrap, acks="all")
    client.produce(topic, b"value")
    assert client.flush(20) == 0
    wait_for(lambda: len(targets(own_cluster, "broker")) == 3, "a standby knows all brokers")
    brokers = targets(own_cluster, "broker")
    all_is_well(own_cluster)
    victim, other, _ = sorted(brokers)
    with watching(bootstrap_of(own_cluster, other)) as changes:
        first = next(changes)
        assert [each["state"] for each in first["brokers"]] == ["up"] * 3
        own_cluster.kill(victim)
        fenced = (
            broker for line in changes for broker in line["brokers"] if broker["state"] == "fenced"
        )
        told = next(fenced)
        assert told["id"] == victim
        assert told["why"].startswith("connection-lost: ")
    the_death_is_explained(own_cluster, topic, victim, other)
    del brokers[victim]
    metered = [
        metrics(each)["kafka_server_replicamanager_underreplicatedpartitions"]
        for each in brokers.values()
    ]
    assert sum(metered) >= 3
    not_ready_without_a_quorum(own_cluster, victim)
    the_controllers_explain_dead_brokers(own_cluster)
    for node in own_cluster.nodes():  # without a quorum nobody grants them an orderly stop
        if node["pid"] and alive(node["pid"]):
            own_cluster.kill(node["id"])


def test_a_paused_broker_delays_the_changes_of_its_partitions(
    tmp_path: Path, new_topic: Callable[[], str]
) -> None:
    """A paused broker keeps its connections, so only its session timeout would fence it."""
    timeout = "broker.session.timeout.ms=600000"
    logged = "quorate.state.change.log.enable=true"
    options = ("--override", timeout, "--override", logged)
    with running(tmp_path / "cluster", *options) as cluster:
        topic = new_topic()
        create_topic(admin(cluster.bootstrap), topic, 3)
        paused, killed, other = sorted(each["id"] for each in cluster.entry()["brokers"])
        bootstrap = bootstrap_of(cluster, other)
        pid = cluster.node(paused)["pid"]
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            cluster.kill(killed)
            held = wait_for(lambda: held_up(bootstrap, topic, paused), "a change is held up")
            assert len(held) == 3
            for each in held:
                assert each["cause"] == "connection-lost"
                assert each["committed_ms"] >= each["appended_ms"] >= each["requested_ms"]
                assert str(other) in each["acted_ms"], "the running host has acted"
            text = run_quorate("status", "--changes", "--bootstrap-server", bootstrap).stdout
            assert f"Node {paused}: does not answer" in text
            assert f"waits for node {paused} to answer" in text
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not held_up(bootstrap, topic, paused), "the changes are complete")
        wait_for(lambda: told(cluster, topic, paused), "the paused broker logs that it acted")
        story = told(cluster, topic, other)
        created = next(i for i, line in enumerate(story) if "metadata offset" in line)
        assert "[topic-created]" in story[created]
        lost = next(i for i, line in enumerate(story) if "[connection-lost]" in line)
        by_brokers = (line for line in story[lost + 1 :] if "  broker " in line)
        assert f"broker {other}: state.change: partition {topic}-0: " in next(by_brokers)
        assert [line[:23] for line in story] == sorted(line[:23] for line in story)


def told(cluster: ProcessCluster, topic: str, broker: int) -> list[str]:
    """Return the story of partition 0 if this broker has logged after the death of another one."""
    directory = str(cluster.directory.root)
    merge = ("state-changes", "merge", directory, "--topic", topic, "--partition", "0")
    lines = run_quorate(*merge).stdout.splitlines()
    deaths = [i for i, line in enumerate(lines) if "[connection-lost]" in line]
    after = lines[deaths[0] :] if deaths else []
    return lines if any(f"  broker {broker}: state.change" in line for line in after) else []


def held_up(bootstrap: str, topic: str, by: int) -> list[dict[str, Any]]:
    """Return the changes of the topic that the node delays."""
    done = run_quorate("status", "--changes", "--format", "json", "--bootstrap-server", bootstrap)
    return [
        each
        for each in json.loads(done.stdout)["changes"]
        if each["topic"] == topic and by in [delay["node_id"] for delay in each["delays"]]
    ]


def is_ready(address: tuple[str, int]) -> bool:
    status, body = get(address, "/readyz")
    assert (status == 200) == json.loads(body)["ready"]
    return status == 200


def measures_its_loop(address: tuple[str, int]) -> bool:
    return metrics(address)["quorate_event_loop_lag_seconds_count"] > 0


def all_is_well(cluster: ProcessCluster) -> None:
    controllers, brokers = targets(cluster, "controller"), targets(cluster, "broker")
    assert (len(controllers), len(brokers)) == (3, 3)
    for address in (*controllers.values(), *brokers.values()):
        wait_for(partial(is_ready, address), f"{address} is ready")
    for address in (*controllers.values(), *brokers.values()):
        wait_for(partial(measures_its_loop, address), "the lag of the loop is measured")
    active = "kafka_controller_kafkacontroller_activecontrollercount"
    assert sorted(metrics(each)[active] for each in controllers.values()) == [0, 0, 1]
    appended = "kafka_server_brokertopicmetrics_messagesin_total"
    assert sum(metrics(each)[appended] for each in brokers.values()) == 1
    assert metrics(brokers[4])["kafka_server_kafkaserver_brokerstate"] == 3


def the_death_is_explained(cluster: ProcessCluster, topic: str, victim: int, other: int) -> None:
    status = run_quorate("status", "--bootstrap-server", bootstrap_of(cluster, other))
    lines = status.stdout.splitlines()
    (broker,) = [line for line in lines if line.startswith(f"Broker {victim}:")]
    assert "fenced" in broker and "connection-lost: Its connection closed" in broker
    problems = [line for line in lines if line.startswith(f"  {topic}-")]
    assert len(problems) == 3
    assert all(f"broker {victim} is down; connection-lost" in line for line in problems)
    assert status.returncode == 0, "under-replicated, and not below min.insync.replicas"


def not_ready_without_a_quorum(cluster: ProcessCluster, victim: int) -> None:
    for controller in cluster.entry()["controllers"][:2]:
        cluster.kill(controller["id"])
    client_port, address = cluster.node(victim)["port"], ("127.0.0.1", free_port())
    listeners = f"PLAINTEXT://127.0.0.1:{client_port},REPLICATION://127.0.0.1:{address[1]}"
    cluster.directory.override(victim, {"listeners": listeners})
    cluster.restart(victim)

    def answer() -> dict[str, Any] | None:
        try:
            status, body = get(address, "/readyz")
        except OSError:
            return None
        assert status == 503
        found: dict[str, Any] = json.loads(body)
        return found

    found = wait_for(answer, "the broker answers while it starts")
    assert found["ready"] is False
    assert "the broker is not registered yet" in found["reasons"]
    assert get(address, "/healthz")[0] == 200


def the_controllers_explain_dead_brokers(cluster: ProcessCluster) -> None:
    """Two of three controllers are dead already."""
    for broker in cluster.entry()["brokers"]:
        cluster.kill(broker["id"])
    done = run_quorate("status", "--dir", str(cluster.directory.root))
    assert done.returncode == 1, done.stderr
    assert "Quorum: LOST: the metadata quorum is lost, as node 3 sees it" in done.stdout
    assert "Controller 1: does not answer, " in done.stdout
    assert "Partitions: not known, because no broker answers: " in done.stdout


@contextmanager
def watching(bootstrap: str) -> Iterator[Iterator[dict[str, Any]]]:
    """The lines of `status --watch`, as they come."""
    process = subprocess.Popen(
        quorate(
            *("status", "--bootstrap-server", bootstrap),
            *("--watch", "--interval", "0.2", "--format", "json"),
        ),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield map(json.loads, process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def bootstrap_of(cluster: ProcessCluster, broker_id: int) -> str:
    node = cluster.node(broker_id)
    return f"{node['host']}:{node['port']}"
