"""cluster.json always shows which nodes run."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.cli.client.errors import Refused
from quorate.cli.nodes import cluster_dir
from quorate.cli.nodes.cluster_dir import (
    ClusterDir,
    Shape,
    decode_cluster,
    listed,
    read_cluster,
    replace_file,
    set_pids,
)
from quorate.cli.nodes.preparation import prepare
from quorate.cli.nodes.supervisor import Supervisor
from quorate.config.listeners import SASL_SSL
from quorate.config.loader import load
from quorate.quorum.node.opening.meta_properties import META_COPY, META_FILE
from quorate.quorum.secured.secured_dir import SecuredDir

NODE_ID = 1
SCRAM = "SCRAM-SHA-512"


def cluster(root: Path) -> ClusterDir:
    """Create the directory of a cluster with one controller and one broker."""
    directory = ClusterDir(root)
    directory.create(Shape(controllers=1, brokers=1, port=0))
    files = [directory.node_file(each) for each in directory.node_ids()]
    directory.write("an id", [load(str(file), environment={}) for file in files])
    return directory


def pid(directory: ClusterDir) -> int | None:
    """Return the pid of the controller in cluster.json."""
    return directory.read()["controllers"][0]["pid"]


def test_a_node_is_listed_while_it_runs(tmp_path: Path) -> None:
    directory = cluster(tmp_path)
    with listed(directory.file, NODE_ID):
        assert pid(directory) == os.getpid()
    assert pid(directory) is None


def test_a_second_start_does_not_unlist_the_first(tmp_path: Path) -> None:
    """A second start of a node is refused and must not remove the pid of the running node."""
    directory = cluster(tmp_path)
    running = os.getppid()
    set_pids(directory.file, {NODE_ID: running})
    with listed(directory.file, NODE_ID):
        pass
    assert pid(directory) == running


def test_a_pid_of_a_dead_process_is_forgotten(tmp_path: Path) -> None:
    directory = cluster(tmp_path)
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    set_pids(directory.file, {NODE_ID: child})
    with listed(directory.file, NODE_ID):
        pass
    assert pid(directory) is None


def test_a_damaged_identity_does_not_keep_the_other_nodes_from_starting(tmp_path: Path) -> None:
    directory = ClusterDir(tmp_path / "cluster")
    shape = Shape(controllers=3, brokers=1, port=0)
    configs = prepare(directory, shape, set())
    damaged = Path(configs[1].log_dir)
    for name in (META_FILE, META_COPY):
        (damaged / name).write_text("?")
    prepare(directory, shape, set())
    assert (damaged / META_FILE).read_text() == "?", "it refuses to start, and says why"
    for config in configs:
        for name in (META_FILE, META_COPY):
            (Path(config.log_dir) / name).write_text("?")
    with pytest.raises(Refused, match="Restore it from a backup"):
        prepare(directory, shape, set())


def test_racks_and_a_port_of_another_cluster_are_refused(tmp_path: Path) -> None:
    directory = ClusterDir(tmp_path / "cluster")
    shape = Shape(controllers=1, brokers=3, port=0, racks=2)
    configs = prepare(directory, shape, {"racks", "port"})
    prepare(directory, shape, {"racks", "port"})
    first = configs[1].listeners.client[0].port
    prepare(directory, replace(shape, port=first), {"port"})
    with pytest.raises(Refused, match="--racks: value 3 must be 2"):
        prepare(directory, replace(shape, racks=3), {"racks"})
    with pytest.raises(Refused, match=f"--port: value 1 must be {first}"):
        prepare(directory, replace(shape, port=1), {"port"})


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"^.*/file: File exists$"):
        prepare(ClusterDir(tmp_path / "file" / "cluster"), Shape(port=0), set())


def test_an_invalid_override_changes_nothing(tmp_path: Path) -> None:
    """The next call without it would fail for the same reason."""
    directory = ClusterDir(tmp_path / "cluster")
    shape = Shape(controllers=1, brokers=1, port=0)
    wrong = replace(shape, overrides=(("log.retention.ms", "abc"),))
    refusal = "override: log.retention.ms: value 'abc' must be a whole number"
    with pytest.raises(Refused, match=refusal):
        prepare(directory, wrong, set())
    assert directory.node_ids() == []
    prepare(directory, shape, set())
    before = directory.node_file(2).read_bytes()
    with pytest.raises(Refused, match=refusal):
        prepare(directory, wrong, set())
    assert directory.node_file(2).read_bytes() == before
    prepare(directory, replace(shape, overrides=(("log.retention.ms", "7"),)), set())
    assert directory.node_file(2).read_bytes() != before


def test_a_command_that_cannot_connect_to_the_brokers_formats_nothing(tmp_path: Path) -> None:
    directory = ClusterDir(tmp_path / "cluster")
    protocols = "PLAINTEXT:SASL_PLAINTEXT,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT"
    overrides = (("listener.security.protocol.map", protocols), ("sasl.enabled.mechanisms", SCRAM))
    shape = Shape(controllers=1, brokers=1, port=0, overrides=overrides)
    for protocol in ("PLAINTEXT", "SSL", "SASL_SSL"):
        with pytest.raises(Refused) as refused:
            prepare(directory, shape, set(), protocol)
        assert refused.value.message == (
            "listener PLAINTEXT of broker 2 has the protocol SASL_PLAINTEXT, and this command "
            f"connects with {protocol}. Give --command-config a file with this security.protocol "
            "and its settings"
        )
        assert not directory.file.exists()
        assert not list(directory.root.glob("nodes/*/data"))
    prepare(directory, shape, set(), "SASL_PLAINTEXT")
    assert len(list(directory.root.glob("nodes/*/data"))) == 2


@pytest.mark.parametrize(
    ("dead", "serves_clients"),
    [((), True), ((1,), True), ((1, 2), False), ((4,), False), ((1, 4), False)],
)
def test_a_cluster_works_with_all_brokers_and_a_majority_of_the_controllers(
    tmp_path: Path, dead: tuple[int, ...], serves_clients: bool
) -> None:
    directory = ClusterDir(tmp_path / "cluster")
    configs = prepare(directory, Shape(controllers=3, brokers=1, port=0), set())
    supervisor = Supervisor(directory, configs, lambda line: None)
    supervisor.failures = dict.fromkeys(dead, "it ended")
    assert supervisor.serves_clients == serves_clients


@given(st.binary(max_size=200) | st.sampled_from([b"[" * 100_000, b"{}", b"null", b"1e999"]))
def test_any_bytes_are_a_cluster_json_or_refused(content: bytes) -> None:
    with contextlib.suppress(Refused):
        decode_cluster(content, "cluster.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "1"}, "must be a number"),
        ({"log_dir": 7}, "must be a number"),
        ({"port": 1 << 40}, "no valid host and port"),
        ({"host": None}, "no valid host and port"),
        ({"pid": -1}, "no valid pid"),
        ({"pid": True}, "no valid pid"),
    ],
)
def test_a_cluster_json_that_is_wrong_is_refused(change: dict[str, object], says: str) -> None:
    node = {"id": 1, "pid": None, "host": "h", "port": 1, "log_dir": "/x"}
    good = {"controllers": [node], "brokers": []}
    assert dict(decode_cluster(json.dumps(good).encode(), "f")) == good
    wrong = {"controllers": [{**node, **change}], "brokers": []}
    with pytest.raises(Refused, match=says):
        decode_cluster(json.dumps(wrong).encode(), "f")


def test_a_cluster_json_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    with open(file, "wb") as made:
        made.truncate(1 << 40)
    with pytest.raises(Refused, match="more than 1048576 bytes"):
        read_cluster(file)


def test_brokers_are_spread_over_racks(tmp_path: Path) -> None:
    directory = ClusterDir(tmp_path)
    directory.create(Shape(controllers=1, brokers=3, port=0, racks=2))
    racks = [load(str(directory.node_file(each)))["broker.rack"] for each in (1, 2, 3, 4)]
    assert racks == [None, "rack-1", "rack-2", "rack-1"]


def test_a_certificate_that_is_missing_is_named(tmp_path: Path) -> None:
    """The files of a secure cluster are read again when a data directory is formatted."""
    secured = SecuredDir(tmp_path)
    secured.create("c", (1, 2))
    directory = ClusterDir(tmp_path)
    directory.create(Shape(controllers=1, brokers=1, port=0, secured=secured))
    secured.authority.keystore("node-1").unlink()
    with pytest.raises(Refused, match=r"node-1/keystore.pem.*No such file"):
        prepare(directory, Shape(secured=secured), set(), SASL_SSL)


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_creation_that_ended_leaves_no_part_of_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """The next start would run the nodes that have files, and never be ready."""
    directory = ClusterDir(tmp_path)
    calls = iter(range(written))

    def replace(file: Path, text: str) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        replace_file(file, text)

    monkeypatch.setattr(cluster_dir, "replace_file", replace)
    with pytest.raises(KeyboardInterrupt):
        directory.create(Shape(controllers=1, brokers=2, port=0))
    assert directory.node_ids() == []
    monkeypatch.undo()
    directory.create(Shape(controllers=2, brokers=2, port=0))
    assert directory.node_ids() == [1, 2, 3, 4]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["nodes"]
    assert load(str(directory.node_file(4))).log_dir == str(tmp_path / "nodes" / "4" / "data")


def test_nodes_do_not_replace_other_files(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "mine").touch()
    with pytest.raises(Refused, match="nodes: Directory not empty: choose another --dir"):
        ClusterDir(tmp_path).create(Shape(controllers=1, brokers=1, port=0))


def test_a_warning_about_the_configs_of_all_nodes_is_written_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shape = Shape(controllers=1, brokers=2, port=0, overrides=(("no.such.key", "1"),))
    prepare(ClusterDir(tmp_path), shape, set())
    lines = [each for each in caplog.messages if "no.such.key" in each]
    assert len(lines) == 1
