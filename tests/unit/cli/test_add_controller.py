"""`quorate metadata-quorum add-controller`: the files of the controller and of the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum.protocol.schemas import raft_voters
from quorate.quorum.protocol.schemas.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.unit.cli.fake_kafka import Answer, fake_kafka

LOGIN = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.username=root
sasl.password=x
"""


@pytest.fixture
def controller(tmp_path: Path) -> str:
    """Return the properties file of a formatted controller."""
    file = tmp_path / "controller.properties"
    file.write_text(
        "process.roles=controller\nnode.id=9\nlisteners=CONTROLLER://127.0.0.1:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    cluster = CliRunner().invoke(main, ["storage", "random-uuid"]).output.strip()
    made = CliRunner().invoke(
        main, ["storage", "format", "-t", cluster, "-c", str(file), "--no-initial-controllers"]
    )
    assert made.exit_code == 0, made.output
    return str(file)


def run(*words: str) -> tuple[Result, list[Any]]:
    """Run the command against a fake server, and return the result and the requests."""
    answers: dict[Any, Answer] = {
        raft_voters.AddRaftVoterRequest: lambda _: raft_voters.AddRaftVoterResponse(),
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(error_code=33, mechanisms=()),
    }
    with fake_kafka(answers) as server:
        given = ["metadata-quorum", "-b", server.address, "--timeout", "2", *words]
        return CliRunner().invoke(main, given), server.requests


@pytest.mark.parametrize("before", [True, False])
def test_the_controller_is_described_by_its_own_file(controller: str, before: bool) -> None:
    command = ("--command-config", controller, "add-controller")
    result, (request,) = run(*(command if before else ("add-controller", "--config", controller)))
    assert result.exit_code == 0, result.output
    assert (request.voter_id, request.listeners[0].port) == (9, 9093)


def test_the_client_logs_in_with_a_file_of_its_own(controller: str, tmp_path: Path) -> None:
    """A cluster that demands a login could get no further controller."""
    client = tmp_path / "client.properties"
    client.write_text(LOGIN)
    result, requests = run(
        "--command-config", str(client), "add-controller", "--config", controller
    )
    assert result.exit_code != 0
    assert [type(each) for each in requests] == [SaslHandshakeRequest]


def test_without_a_file_of_the_controller_nothing_is_asked() -> None:
    result, requests = run("add-controller")
    assert (result.exit_code, requests) == (2, [])
