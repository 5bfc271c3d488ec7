"""The shipped files describe clusters that a node accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorate.cli.nodes.supervisor import STOP_TIMEOUT_S
from quorate.config.loader import load
from quorate.config.not_in_effect import why_not_in_effect
from tests.deployment import files
from tests.deployment.files import Node

SAMPLES = sorted(files.DEPLOYMENT.glob("*.properties"))


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_every_key_of_a_sample_is_in_effect(path: Path) -> None:
    config = load(str(path), environment={})
    keys = re.findall(r"^#?([a-z][a-z.]+)=", path.read_text(), re.MULTILINE)
    assert [key for key in keys if why_not_in_effect(key)] == []
    assert config.log_dir == "/var/lib/quorate/data"


OF_NODES = {"log.level", "log.format"}
OF_BROKERS = {
    "auto.create.topics.enable",
    "default.replication.factor",
    "log.retention.bytes",
    "log.retention.hours",
    "metrics.per.partition",
    "min.insync.replicas",
    "offsets.topic.replication.factor",
}
OF_CONTROLLERS = {"broker.session.timeout.ms", "controller.quorum.fetch.timeout.ms"}
OF_SECURE_NODES = {
    "authorizer.class.name",
    "listener.security.protocol.map",
    "quorate.http.token.file",
    "super.users",
}
OF_PRODUCTION = {"num.partitions", "unclean.leader.election.enable"}
IMPORTANT = {
    "broker": OF_NODES
    | OF_BROKERS
    | OF_SECURE_NODES
    | OF_PRODUCTION
    | {
        "broker.heartbeat.interval.ms",
        "broker.rack",
        "connections.max.idle.ms",
        "log.flush.interval.messages",
        "log.segment.bytes",
        "max.connections",
        "message.max.bytes",
        "num.replica.fetchers",
        "offsets.retention.minutes",
        "queued.max.request.bytes",
        "quorate.queued.max.response.bytes",
        "replica.lag.time.max.ms",
    },
    "combined": OF_NODES
    | OF_BROKERS
    | OF_CONTROLLERS
    | OF_SECURE_NODES
    | OF_PRODUCTION
    | {"replica.lag.time.max.ms"},
    "controller": OF_NODES
    | OF_CONTROLLERS
    | OF_SECURE_NODES
    | OF_PRODUCTION
    | {
        "auto.leader.rebalance.enable",
        "controller.quorum.election.timeout.ms",
        "leader.imbalance.per.broker.percentage",
        "metadata.log.max.record.bytes.between.snapshots",
        "metadata.log.max.snapshot.interval.ms",
        "metadata.max.retention.ms",
        "quorate.metadata.archive.dir",
    },
    "single": OF_NODES | OF_BROKERS,
}
"""The keys that an operator decides on, by sample. A sample may have them as a comment."""


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_a_sample_has_the_keys_that_an_operator_decides_on(path: Path) -> None:
    keys = re.findall(r"^#?([a-z][a-z.]+)=", path.read_text(), re.MULTILINE)
    assert sorted(IMPORTANT[path.stem] - set(keys)) == []
    assert sorted(key for key in set(keys) if keys.count(key) > 1) == []


VALUES_OF_TOPICS = (
    "num.partitions",
    "default.replication.factor",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)


@pytest.mark.parametrize("key", VALUES_OF_TOPICS)
def test_controllers_and_brokers_have_the_same_values_for_new_topics(key: str) -> None:
    """The controllers fill in the values of CreateTopics, and the brokers those of topics that they
    create on demand."""
    pattern = rf"^{re.escape(key)}=.*$"
    lines = [
        re.findall(pattern, (files.DEPLOYMENT / f"{role}.properties").read_text(), re.MULTILINE)
        for role in ("controller", "broker")
    ]
    assert len(lines[0]) == 1
    assert lines[0] == lines[1]


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_a_comment_precedes_the_first_key_of_each_part(path: Path) -> None:
    for part in path.read_text().strip().split("\n\n"):
        assert part.startswith("#"), part


def described(nodes: list[Node]) -> None:
    """Assert that the nodes are three controllers and three brokers of one quorum, each at an
    address that the others know."""
    configs = {
        node.service + node.arguments[1]: load(
            str(node.file), environment={}, overrides=node.overrides
        )
        for node in nodes
    }
    assert sorted(config.node_id for config in configs.values()) == [1, 2, 3, 101, 102, 103]
    voters = {config.voters for config in configs.values()}
    assert len(voters) == 1
    addresses = {voter.id: (voter.host, voter.port) for voter in voters.pop()}
    for config in configs.values():
        if "controller" in config.roles:
            own = config.listeners.advertisement("CONTROLLER")
            assert own is not None
            assert addresses[config.node_id] == (own.host, own.port)
        else:
            assert config.listeners.replication is not None
            assert config.listeners.replication.port == 9094


def test_compose_describes_one_cluster() -> None:
    described(files.compose_nodes())


def test_the_manifests_describe_one_cluster() -> None:
    described(files.pods())


def test_every_node_has_the_time_for_its_controlled_shutdown() -> None:
    services = [files.COMPOSE["services"][node.service] for node in files.compose_nodes()]
    given = [service["stop_grace_period"] for service in services]
    for each in files.stateful_sets():
        pod = each["spec"]["template"]["spec"]
        given += [f"{pod['terminationGracePeriodSeconds']}s"]
    given += re.findall(r"^TimeoutStopSec=(\d+)$", files.UNIT, re.MULTILINE)
    assert len(given) == 6 + 2 + 1
    assert all(int(each.removesuffix("s")) > STOP_TIMEOUT_S for each in given)


def test_the_probes_ask_the_port_of_the_nodes() -> None:
    for each in files.stateful_sets():
        (container,) = each["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports["nodes"] == (9093 if "controller" in each["metadata"]["name"] else 9094)
        for probe, path in (("readiness", "/readyz"), ("liveness", "/healthz")):
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "nodes"}


def test_the_image_contains_what_its_nodes_read() -> None:
    dockerfile = (files.ROOT / "Dockerfile").read_text()
    for node in [*files.compose_nodes(), *files.pods()]:
        assert node.file.exists()
        assert f"config/deployment/{node.file.name}" in dockerfile
    copied = (files.ROOT / ".dockerignore").read_text().split()
    assert {"!quorate", "!quorum", "!broker", "!cli", "!config"} <= set(copied)
