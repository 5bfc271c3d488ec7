"""The first server that answers: paused, dead and refusing ones beside it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import cast

import pytest

from quorate.cli.client import first_answer as module
from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.first_answer import NoneAnswered, first_answer
from quorate.quorum.protocol.schemas import cluster
from tests.unit.cli.fake_kafka import fake_kafka


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGGER_S", 0.001)


class Opened(Connection):
    def __init__(self) -> None:
        self.shut = threading.Event()

    def close(self) -> None:
        self.shut.set()


def failing(error: Exception) -> Callable[[], Connection]:
    def attempt() -> Connection:
        raise error

    return attempt


def test_a_server_that_never_answers_holds_up_nobody() -> None:
    release, late, found = threading.Event(), Opened(), Opened()

    def paused() -> Connection:
        release.wait()
        return late

    assert first_answer([paused, lambda: found]) == (1, found)
    assert not found.shut.is_set()
    release.set()
    assert late.shut.wait(10), "a connection that nobody uses stays open"


def test_the_reasons_of_all_are_named_in_their_order() -> None:
    with pytest.raises(NoneAnswered, match=r"^a: gone; b: gone$"):
        first_answer([failing(ConnectionLost("a: gone")), failing(ConnectionLost("b: gone"))])


def test_a_refusal_ends_the_search() -> None:
    never = threading.Event()

    def paused() -> Connection:
        never.wait()
        return cast(Connection, None)

    with pytest.raises(Refused, match="certificate"):
        first_answer([paused, failing(Refused("certificate"))])
    never.set()


def test_an_admin_beside_a_paused_and_a_dead_server() -> None:
    """The system accepts the connection of a paused server, and nobody answers."""
    answer = cluster.DescribeQuorumResponse(error_code=0, topics=(), nodes=())
    with (
        socket.create_server(("127.0.0.1", 0)) as paused,
        socket.create_server(("127.0.0.1", 0)) as dead,
        fake_kafka({cluster.DescribeQuorumRequest: lambda _: answer}) as good,
    ):
        gone = dead.getsockname()[:2]
        dead.close()
        servers = (gone, paused.getsockname()[:2], (good.host, good.port))
        admin = Admin(AdminSettings(servers=servers))
        asked = cluster.DescribeQuorumRequest(topics=())
        assert admin.ask(asked, cluster.DescribeQuorumResponse) == answer
        admin.close()
        only_dead = Admin(AdminSettings(servers=(gone,), timeout_s=0))
        with pytest.raises(NotReachable, match=f"no server answers: {gone[0]}:{gone[1]}: "):
            only_dead.ask(asked, cluster.DescribeQuorumResponse)


def refusing() -> tuple[str, int]:
    """The address of a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        host, port = dead.getsockname()[:2]
    return host, port


def test_absent_servers_end_the_search_early_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(time, "sleep", lambda _: now_s.__setitem__(0, now_s[0] + 1.0))
    unknown = ("no.such.host.invalid", 9092)
    for at, reason in ((refusing(), "connection refused"), (unknown, "does not resolve")):
        now_s[0] = 0.0
        admin = Admin(AdminSettings(servers=(at,), absent_s=5.0))
        with pytest.raises(NotReachable, match=f"{reason}. Start a broker there, or give ") as info:
            admin.ask(cluster.DescribeQuorumRequest(topics=()), cluster.DescribeQuorumResponse)
        assert "--bootstrap-server" in str(info.value)
        assert 5.0 < now_s[0] < 7.0


def test_servers_that_have_answered_may_be_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(time, "sleep", lambda _: now_s.__setitem__(0, now_s[0] + 1.0))
    asked = cluster.DescribeQuorumRequest(topics=())
    answer = cluster.DescribeQuorumResponse(error_code=0, topics=(), nodes=())
    with fake_kafka({cluster.DescribeQuorumRequest: lambda _: answer}) as good:
        servers = ((good.host, good.port),)
        admin = Admin(AdminSettings(servers=servers, absent_s=5.0, timeout_s=20.0))
        admin.ask(asked, cluster.DescribeQuorumResponse)
    with pytest.raises(NotReachable):
        admin.ask(asked, cluster.DescribeQuorumResponse)
    assert now_s[0] > 20.0


def test_an_impatient_command_makes_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    admin = Admin(AdminSettings(servers=(refusing(),), impatient=True))
    with pytest.raises(NotReachable, match="connection refused"):
        admin.ask(cluster.DescribeQuorumRequest(topics=()), cluster.DescribeQuorumResponse)
