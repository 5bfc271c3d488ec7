"""Kafka's tools and their Java client against our brokers, in requests that our tools do not send:
every codec, offsets, versions, features, endpoints."""

from __future__ import annotations

import re

import pytest

from tests.clients.cluster import ProcessCluster, wait_for
from tests.kafka.tools import kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

LINES = [f"line {number}" for number in range(50)]


def told(name: str, *arguments: str, stdin: str = "") -> list[str]:
    done = kafka(name, *arguments, stdin=stdin)
    assert done.code == 0, (done.lines, done.errors)
    return done.lines


def test_records_of_all_codecs_and_their_offsets(cluster: ProcessCluster) -> None:
    at = ("--bootstrap-server", cluster.bootstrap, "--topic", "codecs")
    told("topics", *at, "--create", "--partitions", "1")
    text = "".join(f"{line}\n" for line in LINES)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        told("console-producer", *at, "--compression-codec", codec, stdin=text)
    read = told(
        "console-consumer", *at, "--partition", "0", "--offset", "earliest",
        *("--max-messages", "250", "--timeout-ms", "30000"),
    )  # fmt: skip
    assert read == LINES * 5
    assert told("get-offsets", *at) == ["codecs:0:250"]
    assert told("get-offsets", *at, "--time", "earliest") == ["codecs:0:0"]
    (last,) = told("get-offsets", *at, "--time", "max-timestamp")
    assert 200 <= int(last.removeprefix("codecs:0:")) < 250
    told("topics", *at, "--delete")
    server = at[:2]
    wait_for(lambda: "codecs" not in told("topics", *server, "--list"), "the topic is gone")


def test_the_newest_versions_are_usable(cluster: ProcessCluster) -> None:
    """Kafka's newest client can use the newest version of whatever we advertise."""
    lines = told("broker-api-versions", "--bootstrap-server", cluster.bootstrap)
    assert sum("(id: " in line for line in lines) == 3
    offers = [line for line in lines if re.search(r"\(\d+\): \d", line)]
    assert offers
    for line in offers:
        found = re.search(r"\): (?:\d+ to )?(\d+) \[usable: (\d+)\]", line)
        assert found and found[1] == found[2], line


def test_configs_of_a_broker(cluster: ProcessCluster) -> None:
    broker = cluster.entry()["brokers"][0]
    at = ("--bootstrap-server", cluster.bootstrap, "--broker", str(broker["id"]))
    lines = told("configs", *at, "--describe", "--all")
    assert lines[0] == f"All configs for broker {broker['id']} are:"
    assert any(line.startswith(f"  log.dirs={broker['log_dir']} ") for line in lines)


@pytest.mark.parametrize(("port", "nodes"), [("server", "brokers"), ("controller", "controllers")])
def test_endpoints(cluster: ProcessCluster, port: str, nodes: str) -> None:
    entry = cluster.entry()
    known = {"brokers": entry["brokers"], "controllers": entry["controllers"]}[nodes]
    bootstrap = entry["bootstrap"] if port == "server" else entry["bootstrap_controllers"]
    header, *rows = told("cluster", "list-endpoints", f"--bootstrap-{port}", bootstrap)
    assert header.split()[:3] == ["ID", "HOST", "PORT"]
    expected = sorted([str(node["id"]), node["host"], str(node["port"])] for node in known)
    assert sorted(row.split()[:3] for row in rows) == expected


def test_features(cluster: ProcessCluster) -> None:
    elr, raft, metadata = sorted(
        told("features", "--bootstrap-server", cluster.bootstrap, "describe")
    )
    assert "Feature: eligible.leader.replicas.version\tSupportedMinVersion: 0" in elr
    assert "FinalizedVersionLevel: 1" in elr
    assert "Feature: kraft.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1" in raft
    assert "Feature: metadata.version\tSupportedMinVersion: 4.0-IV1" in metadata
    assert "FinalizedVersionLevel: 4.1-IV1" in metadata
