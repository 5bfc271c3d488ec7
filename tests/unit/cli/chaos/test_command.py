"""`quorate chaos` refuses a scenario that cannot run before it causes any fault."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.chaos.actions.controller_question import Place, answer_to, is_active
from quorate.cli.chaos.checks.observations import (
    ANSWERED,
    CHANGE,
    NO_ANSWER,
    NOT_CONTROLLER,
    READ,
)
from quorate.cli.chaos.command import chaos
from quorate.cli.chaos.control.listed_cluster import ListedCluster
from quorate.cli.chaos.control.local_cluster import LocalCluster
from quorate.cli.chaos.control.pause_guard import is_stopped, process_state
from quorate.cli.chaos.loading.loader import bundled_scenarios, load
from quorate.cli.chaos.loading.node_file import NodeList
from quorate.cli.chaos.run import cluster_choice
from quorate.cli.chaos.run.existing_runs import existing_cluster
from quorate.cli.chaos.scenario.scenario import Scenario
from quorate.cli.chaos.scenario.steps import STEPS
from quorate.cli.client.errors import PARTLY, NotReachable, Refused
from quorate.cli.nodes.cluster_dir import ClusterDir, Shape
from quorate.config.listeners import PLAINTEXT, SSL
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import metadata
from quorate.quorum.protocol.schemas.cluster import DescribeQuorumRequest, DescribeQuorumResponse
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from quorate.quorum.protocol.schemas.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.secured.secured_dir import SecuredDir
from tests.unit.cli.chaos.histories import result
from tests.unit.cli.fake_kafka import fake_kafka


def run(*arguments: str) -> Result:
    """Run a command of `quorate chaos`."""
    return CliRunner().invoke(chaos, arguments)


def cluster(directory: Path, pid: int | None) -> str:
    """Write the cluster.json of a cluster with one broker, and return the directory."""
    node = {"id": 4, "pid": pid, "host": "127.0.0.1", "port": 1, "log_dir": str(directory)}
    entry = {"cluster_id": "c", "bootstrap": "127.0.0.1:1", "bootstrap_controllers": ""}
    (directory / "cluster.json").write_text(
        json.dumps({**entry, "controllers": [], "brokers": [node]})
    )
    return str(directory)


def test_the_list() -> None:
    listed = run("list")
    assert listed.exit_code == 0
    assert "leader-kill" in listed.output
    assert "--variant partition: all traffic between it and" in listed.output
    names = [each["name"] for each in json.loads(run("list", "--format", "json").output)]
    assert names == list(bundled_scenarios())
    first_words = [line.split()[0] for line in listed.output.splitlines() if line[0] != " "]
    assert first_words == names, "a space follows each name"


def test_the_list_of_steps() -> None:
    told = run("steps").output
    assert (
        "  partitions = 12             Partitions of the topic that is written and read.\n" in told
    )
    assert (
        "  mute-heartbeats             Drop the heartbeats of a broker and nothing else. Keys: "
        in told
    )
    assert all(f"  {do} " in told for do in STEPS)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nonsense",), 1, "no such scenario. It must be one of client-links"),
        (("leader-kill", "--variant", "x"), 2, "--variant: value 'x' must be one of kill"),
        (("leader-kill", "--partitions", "0"), 2, "0 is not in the range"),
        (("leader-kill", "--override", "x"), 2, "'x' must be KEY=VALUE"),
        (("leader-kill", "--override", "node.ids=1"), 1, "node.ids would change nothing on a node"),
        (
            ("leader-kill", "--override", "num.io.threads=9"),
            1,
            "change nothing on a node: one event loop serves all connections",
        ),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], code: int, said: str) -> None:
    ended = run("run", *arguments)
    assert (ended.exit_code, said in ended.output) == (code, True), ended.output


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "x"\nvariant = 3\n')
    ended = run("run", str(file))
    assert ended.exit_code == 1
    assert f"{file}:2: 'variant' is an unknown key; the known keys are: title" in ended.output


def test_directories_without_a_cluster_that_can_run_a_scenario(tmp_path: Path) -> None:
    ended = run("run", "leader-kill", "--dir", str(tmp_path))
    assert "there is no cluster in this directory" in ended.output
    ended = run("run", "leader-kill", "--dir", cluster(tmp_path, None))
    assert "every node must run before a scenario; down: 4" in ended.output
    ended = run("run", "heartbeat-timeout", "--dir", cluster(tmp_path, os.getpid()))
    assert "start them with `quorate up --faults --dir" in ended.output
    ended = run("run", "leader-kill", "--dir", str(tmp_path), "--override", "a=b")
    assert ended.exit_code == 2


def test_a_cluster_with_another_config_is_refused(tmp_path: Path) -> None:
    directory = cluster(tmp_path, os.getpid())
    nodes = ClusterDir(tmp_path)
    nodes.create(Shape(controllers=3, brokers=1, port=0))
    scenario = tmp_path / "mine.toml"
    scenario.write_text(
        'title = "x"\n[cluster]\nbrokers = 1\n[cluster.config]\n'
        '"broker.session.timeout.ms" = 4000\n[workload]\nreplication_factor = 1\n'
        'min_insync_replicas = 1\n[[variants]]\nname = "v"\n'
        '[[variants.steps]]\ndo = "kill"\nnode = 4\n'
    )
    ended = run("run", str(scenario), "--dir", directory)
    assert ended.exit_code == 1
    assert (
        "mine needs broker.session.timeout.ms=4000, and node 4 has 9000. Restart the cluster with "
        f"`quorate up --faults --dir {directory} --override broker.session.timeout.ms=4000`, or "
        "give --keep-config"
    ) in ended.output
    nodes.override(4, {"broker.session.timeout.ms": "4000"})
    existing_cluster(load(str(scenario)), tmp_path)
    nodes.override(4, {"broker.session.timeout.ms": "3000"})
    existing_cluster(load(str(scenario)), tmp_path, keep_config=True)
    assert run("run", "leader-kill", "--keep-config").exit_code == 2


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT"])
def test_brokers_that_demand_tls_or_sasl_are_refused(tmp_path: Path, protocol: str) -> None:
    key = "listener.security.protocol.map"
    protocols = f"plaintext:{protocol},REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ended = run("run", "leader-kill", "--override", f"{key}={protocols}")
    assert ended.exit_code == 1
    assert (
        f"{key}: PLAINTEXT has {protocol}, and the clients of a temporary cluster use"
        in ended.output
    )
    directory = cluster(tmp_path, os.getpid())
    nodes = ClusterDir(tmp_path)
    settings = {
        "SSL": {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/keystore"},
        "SASL_PLAINTEXT": {"sasl.enabled.mechanisms": "SCRAM-SHA-512"},
    }[protocol]
    secured = ((key, protocols), *settings.items())
    nodes.create(Shape(controllers=3, brokers=1, port=0, overrides=secured))
    ended = run("run", "leader-kill", "--dir", directory)
    assert ended.exit_code == 1
    assert f"listener PLAINTEXT of broker 4 has the protocol {protocol}" in ended.output
    assert "--command-config names a file with the protocol of the clients" in ended.output


def test_a_listed_cluster_that_answers_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener with SASL closes the connection after a request other than ApiVersions."""
    with fake_kafka({metadata.MetadataRequest: lambda _: None}) as server:
        listed = ListedCluster(
            NodeList(nodes={}, expect={}, command_timeout_ms=0), ((server.host, server.port),)
        )
        admin = listed.admin(0.1)
        monkeypatch.setattr(listed, "admin", lambda: admin)
        with pytest.raises(NotReachable, match="--command-config names a file"):
            listed.refuse_other_nodes()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.NONE, True),
        (ErrorCode.NOT_CONTROLLER, False),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None),
    ],
)
def test_only_an_answer_without_error_is_that_of_the_active_controller(
    error: ErrorCode, expected: bool | None
) -> None:
    answer = DescribeQuorumResponse(error_code=error, topics=(), nodes=())
    with fake_kafka({DescribeQuorumRequest: lambda _: answer}) as server:
        assert is_active(Place(server.host, server.port)) is expected


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ErrorCode.NONE, ANSWERED),
        (ErrorCode.NOT_CONTROLLER, NOT_CONTROLLER),
        (ErrorCode.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT"),
        (None, NO_ANSWER),
    ],
)
def test_the_answers_of_a_controller_to_a_change_and_a_read(
    code: ErrorCode | None, name: str
) -> None:
    changed = IncrementalAlterConfigsResourceResponse(
        error_code=code or 0, error_message=None, resource_type=2, resource_name="t"
    )
    answers: dict[type[Message], Any] = {
        IncrementalAlterConfigsRequest: lambda _: IncrementalAlterConfigsResponse(
            responses=(changed,)
        ),
        ListPartitionReassignmentsRequest: lambda _: ListPartitionReassignmentsResponse(
            error_code=code or 0, topics=()
        ),
    }
    with fake_kafka(answers if code is not None else dict.fromkeys(answers, closes)) as server:
        place = Place(server.host, server.port)
        assert [answer_to(what, place, "t") for what in (CHANGE, READ)] == [name, name]


def closes(request: Message) -> None:
    """Close the connection without an answer."""


def test_controllers_of_a_secure_cluster_demand_a_certificate(tmp_path: Path) -> None:
    found = LocalCluster(tmp_path)
    assert found.controller_security().protocol == PLAINTEXT
    SecuredDir(tmp_path).create("c", [1])
    assert found.controller_security().protocol == SSL


def test_the_seed_is_chosen_by_the_user_or_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def recorded(scenario: object, variants: object, seed: int, *others: object) -> object:
        seeds.append(seed)
        return result()

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", recorded)
    for arguments in (("--seed", "7"), (), ()):
        assert run("run", "leader-kill", *arguments).exit_code == 0
    assert seeds[0] == 7
    assert seeds[1] != seeds[2], "each run without a seed draws one"


def test_all_scenarios_make_a_table_and_one_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names: list[str] = []
    written: list[int] = []
    file, junit = tmp_path / "new" / "r.json", tmp_path / "r.xml"

    def one_is_bad(scenario: Scenario, *others: object) -> object:
        names.append(scenario.name)
        written.append(len(json.loads(file.read_text())) if file.exists() else 0)
        return result(taken_back=int(scenario.name == "leader-kill"))

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", one_is_bad)
    ended = run("run", "all", "--json", str(file), "--junit", str(junit))
    assert ended.exit_code == 1
    assert names == list(bundled_scenarios())
    assert written == list(range(len(names))), "the files are written after each scenario"
    assert "taken back" in ended.output.splitlines()[-len(names) :][names.index("leader-kill")]
    assert [each["verdict"] for each in json.loads(file.read_text())].count("bad") == 1
    assert junit.read_text().count("<testsuite ") == len(names)
    assert run("run", "all", "--html", "x.html").exit_code == 2


def test_a_refused_scenario_does_not_end_the_run_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdicts = {"leader-kill": "refused", "power-loss": "good"}

    def refuses(scenario: Scenario, *others: object) -> object:
        match verdicts.get(scenario.name, verdicts["power-loss"]):
            case "refused":
                raise Refused("x.toml:7: needs a fault socket")
            case "lost":
                raise NotReachable("no broker answers")
        return result(taken_back=int(verdicts.get(scenario.name) == "bad"))

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", refuses)
    file, junit = tmp_path / "r.json", tmp_path / "r.xml"
    ended = run("run", "all", "--json", str(file), "--junit", str(junit))
    assert ended.exit_code == PARTLY, "no verdict is bad, but one scenario was not run"
    lines = ended.output.splitlines()
    assert "refused: x.toml:7: needs a fault socket" in lines
    row = next(line for line in lines if line.startswith("leader-kill  "))
    assert row.split()[1:4] == ["refused", "-", "-"]
    assert row.endswith("x.toml:7: needs a fault socket")
    by_name = {each["scenario"]: each for each in json.loads(file.read_text())}
    assert by_name["leader-kill"]["reason"] == "x.toml:7: needs a fault socket"
    assert '<skipped message="refused: x.toml:7: needs a fault socket" />' in junit.read_text()
    verdicts["clock-skew"] = "bad"
    assert run("run", "all").exit_code == 1, "a bad verdict is worse than a refusal"
    verdicts["power-loss"] = "lost"
    del verdicts["clock-skew"]
    assert run("run", "all").exit_code == 1, "nothing was tested"
    assert run("run", "leader-kill").exit_code == 1
    assert run("run", "power-loss").exit_code == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--json", "file/r.json"), "--json: file/r.json cannot be written: file is no directory"),
        (("--html", "/proc/r.html"), "--html: /proc/r.html cannot be written: "),
        (("--json", "r", "--junit", "./r"), "--json and --junit name the same file: r"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    options: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    runs: list[object] = []
    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", runs.append)
    ended = run("run", "leader-kill", *options)
    assert (ended.exit_code, runs) == (2, [])
    assert said in ended.output


def test_a_run_that_is_refused_leaves_the_files_of_the_run_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuses(*arguments: object) -> object:
        raise Refused("no")

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", refuses)
    before, new = tmp_path / "before.json", tmp_path / "new" / "r.xml"
    before.write_text("kept")
    assert run("run", "leader-kill", "--json", str(before), "--junit", str(new)).exit_code == 1
    assert before.read_text() == "kept"
    assert not new.exists()


def test_a_file_that_cannot_be_written_at_the_end_does_not_lose_the_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, junit = tmp_path / "d" / "r.json", tmp_path / "r.xml"

    def removes(*arguments: object) -> object:
        file.parent.rmdir()
        return result()

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", removes)
    ended = run("run", "leader-kill", "--json", str(file), "--junit", str(junit))
    assert ended.exit_code == PARTLY
    assert "verdict  GOOD" in ended.output
    assert f"--json: {file} cannot be written: No such file or directory" in ended.output
    assert junit.exists()


def test_a_signal_ends_the_run_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def interrupted(scenario: Scenario, *others: object) -> object:
        names.append(scenario.name)
        return replace(result(), ended_by="SIGINT" if len(names) == 2 else None)

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", interrupted)
    ended = run("run", "all")
    assert names == list(bundled_scenarios())[:2]
    assert ended.exit_code == PARTLY
    assert ended.output.splitlines()[-1].endswith("SIGINT ended the run of all scenarios")


def test_a_secure_cluster_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[object] = []

    def recorded(*arguments: object) -> object:
        chosen.append(arguments[3])
        return result()

    monkeypatch.setattr(cluster_choice, "run_on_temporary_cluster", recorded)
    assert run("run", "leader-kill", "--secure").exit_code == 0
    assert chosen == [((), True, False)]
    ended = run("run", "leader-kill", "--secure", "--dir", ".")
    assert (ended.exit_code, "run already" in ended.output) == (2, True)


def test_heal_lets_a_paused_node_continue(tmp_path: Path) -> None:
    process = subprocess.Popen((sys.executable, "-c", "import time; time.sleep(600)"))
    try:
        directory = cluster(tmp_path, process.pid)
        assert run("heal", "--dir", directory).output == "there is no fault\n"
        process.send_signal(signal.SIGSTOP)
        assert is_stopped(process.pid)
        ended = run("heal", "--dir", directory)
        assert (ended.exit_code, ended.output) == (0, "node 4: it was paused and continues\n")
        assert process_state(process.pid) != "T"
    finally:
        process.kill()
        process.wait()


def test_heal_says_what_it_cannot_end(tmp_path: Path) -> None:
    directory = cluster(tmp_path, os.getpid())
    socket = ClusterDir(tmp_path).faults_socket(4)
    socket.parent.mkdir(parents=True)
    socket.write_text("no socket")
    ended = run("heal", "--dir", directory)
    assert ended.exit_code == 4
    assert "node 4 does not answer" in ended.output
    assert "there is no cluster" in run("heal", "--dir", str(socket.parent)).output
