"""`quorate status` if no broker answers or the quorum is lost: what the nodes' /readyz says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from quorate.cli.client import node_http
from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable
from quorate.cli.client.node_http import NodeHttp
from quorate.cli.main import main
from quorate.cli.status import outage
from quorate.cli.status.cluster_status import Selection, Status
from quorate.cli.status.explanations import Explanations
from quorate.cli.status.node_answers import READY, NodeAnswer, Place
from quorate.cli.status.outage import (
    BROKER,
    CONTROLLER,
    KnownNodes,
    configured_controllers,
    listed_places,
    read_in_outages,
)
from quorate.cli.status.status_tables import status_tables
from quorate.cli.status.unclean_elections import UncleanElections
from quorate.cli.terminal.tables import terminal_lines
from quorate.quorum.protocol.schemas import configs, metadata
from tests.unit.cli.fake_kafka import fake_kafka
from tests.unit.cli.test_status_watch import HEALTHY

LOST = "the metadata quorum is lost, as node 1 sees it: it reaches 1 of 3 voters"


def target(place: Place) -> dict[str, object]:
    labels = {"node_id": str(place.id), "role": place.role}
    return {"targets": [place.address], "labels": labels}


class Nodes:
    """The HTTP ports of nodes. Those of paused nodes accept connections and never answer."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def answering(self, node_id: int, *reasons: str, targets: list[Place] | None = None) -> Place:
        ready = {"ready": not reasons, "reasons": reasons, "node_id": node_id, "cluster_id": "C"}

        def found(path: str) -> object:
            if path == "/readyz":
                return ready
            return None if targets is None else [target(each) for each in targets]

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = found(self.path)
                unready = reasons and self.path == "/readyz"
                self.send_response(404 if body is None else 503 if unready else 200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self._stack.callback(server.server_close)
        self._stack.callback(thread.join)
        self._stack.callback(server.shutdown)
        return Place(CONTROLLER, "127.0.0.1", server.server_port, node_id)

    def paused(self, node_id: int) -> Place:
        listening = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        return Place(CONTROLLER, "127.0.0.1", listening.getsockname()[1], node_id)

    def dead(self, node_id: int, role: str = CONTROLLER) -> Place:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            return Place(role, "127.0.0.1", listening.getsockname()[1], node_id)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setattr(node_http, "REQUEST_TIMEOUT_S", 0.2)
    with ExitStack() as stack:
        yield Nodes(stack)


def read(known: KnownNodes, server: Place) -> Status:
    """Read the status through a server that is dead."""
    admin = Admin(AdminSettings(servers=((server.host, server.port),), impatient=True))
    try:
        return read_in_outages(admin, known, Explanations(), Selection(), UncleanElections())
    finally:
        admin.close()


def text(status: Status) -> str:
    return "\n".join(status.lines())


def test_dead_brokers_and_a_paused_voter_are_named(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def quorum(_: Admin, controllers: list[str]) -> tuple[None, str]:
        asked.append(controllers)
        return None, ""

    monkeypatch.setattr(outage, "asked_quorum", quorum)
    broker, paused = nodes.dead(4, BROKER), nodes.paused(2)
    third, listed = nodes.answering(3), [paused, broker]
    first = nodes.answering(1, targets=listed)
    listed += [first, third]
    known = KnownNodes(controllers=(first,), brokers=(replace(broker, port=1),))
    found = read(known, nodes.dead(4))
    assert asked == [[first.address]]
    assert found.is_outage
    shown = text(found)
    assert "Cluster C\n" in shown
    assert f"Controller 2: does not answer, {paused.address}: no answer within 0.2 s" in shown
    assert f"Controller 3: ready, {third.address}\n" in shown
    assert f"Broker 4: does not answer, {broker.address}; connection refused" in shown
    assert "Partitions: not known, because no broker answers: 127.0.0.1:" in shown
    drawn = "\n".join(terminal_lines(status_tables(found), 200))
    assert "does not answer" in drawn and "Controllers that answer" in drawn
    assert "Partitions with a leader" not in drawn


def test_a_lost_quorum_is_named_without_waiting_for_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage, "asked_quorum", lambda *_: pytest.fail("it waits"))
    known = KnownNodes(controllers=(nodes.answering(1, LOST), nodes.dead(2), nodes.dead(3)))
    assert read(known, nodes.dead(4)).quorum_lost == LOST
    voters = [nodes.paused(2), nodes.paused(3)]
    alone = nodes.answering(1, targets=[])
    alone_in_three = nodes.answering(1, targets=[alone, *voters])
    found = read(KnownNodes(controllers=(alone_in_three,)), nodes.dead(4))
    assert found.quorum_lost == "1 of 3 voters answer, and the quorum needs 2"


def test_a_cluster_of_which_no_node_answers(nodes: Nodes) -> None:
    known = KnownNodes(controllers=(nodes.dead(1), nodes.dead(2)))
    with pytest.raises(NotReachable, match="No controller answers either: "):
        read(known, nodes.dead(4))
    with pytest.raises(NotReachable, match="With --bootstrap-controller the command"):
        read(KnownNodes(), nodes.dead(4))


def test_a_lost_quorum_that_the_brokers_report_names_the_paused_voter(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controllers are known from the configs of a broker."""
    paused, other = nodes.paused(2), nodes.answering(1, "no leader")
    monkeypatch.setattr(outage, "read_status", lambda *_: replace(HEALTHY, quorum_lost="no answer"))
    voters = ",".join(f"{each.id}@{each.address}" for each in (other, paused))
    with fake_kafka(
        {
            metadata.MetadataRequest: lambda _: metadata.MetadataResponse(
                brokers=(broker_at(server.host, server.port),), topics=()
            ),
            configs.DescribeConfigsRequest: lambda _: described(voters),
        }
    ) as server:
        found = read(KnownNodes(), Place(BROKER, server.host, server.port, 4))
    assert [each.state for each in found.nodes] == ["not ready", "does not answer"]
    assert f"Controller 2: does not answer, {paused.address}: " in text(found)


def broker_at(host: str, port: int) -> Any:
    return metadata.MetadataResponseBroker(node_id=4, host=host, port=port)


def described(voters: str) -> configs.DescribeConfigsResponse:
    return configs.DescribeConfigsResponse(
        results=(
            configs.DescribeConfigsResult(
                error_code=0,
                error_message=None,
                resource_type=4,
                resource_name="4",
                configs=(
                    configs.DescribeConfigsResourceResult(
                        name="controller.quorum.voters",
                        value=voters,
                        read_only=True,
                        is_sensitive=False,
                    ),
                ),
            ),
        )
    )


def test_a_node_with_an_address_of_ipv6_is_asked_there(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(CONTROLLER, "::1", 9093, 1)
    assert place.address == "[::1]:9093"
    asked = []

    def get(server: tuple[str, int], path: str) -> None:
        asked.append((server, path))

    http = SimpleNamespace(get=get)
    answer = NodeAnswer(role=CONTROLLER, id=1, address=place.address, state=READY)
    assert listed_places(cast(NodeHttp, http), [answer]) == []
    assert asked == [(("::1", 9093), "/v1/targets")]


def test_controllers_of_other_forms_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outage.places_in("1@h:1", None) == (Place(CONTROLLER, "h", 1, 1),)
    assert outage.places_in("", "h:1, i:2") == (
        Place(CONTROLLER, "h", 1),
        Place(CONTROLLER, "i", 2),
    )
    assert outage.places_in("nonsense", None) == outage.places_in(None, None) == ()
    admin = Admin(AdminSettings(servers=(("127.0.0.1", 1),), impatient=True))
    assert configured_controllers(admin, [4]) == ()


def test_the_command_reads_cluster_json_and_fails_soon(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waits"))

    def entry(place: Place) -> dict[str, Any]:
        return {
            "id": place.id,
            "pid": None,
            "host": place.host,
            "port": place.port,
            "log_dir": "d",
        }

    def write(controller: Place, broker: Place) -> None:
        found = {
            "cluster_id": "C",
            "bootstrap": broker.address,
            "bootstrap_controllers": controller.address,
            "controllers": [entry(controller)],
            "brokers": [entry(broker)],
        }
        (tmp_path / "cluster.json").write_text(json.dumps(found))

    run: Callable[..., Any] = CliRunner().invoke
    write(nodes.answering(1, LOST), nodes.dead(4))
    done = run(main, ["status", "--dir", str(tmp_path)])
    assert done.exit_code == 1
    assert f"Quorum: LOST: {LOST}\n" in done.output
    assert "Broker 4: does not answer" in done.output
    write(nodes.dead(1), nodes.dead(4))
    done = run(main, ["status", "--dir", str(tmp_path)])
    assert done.exit_code == 3
    assert "No controller answers either" in done.output
    option = ["--bootstrap-controller", nodes.answering(1, LOST).address]
    done = run(main, ["status", "--dir", str(tmp_path), *option])
    assert f"Quorum: LOST: {LOST}\n" in done.output, "the option precedes the file"
