"""A warning about credentials that a client changes without TLS."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from quorate.quorum.rpc.kafka.clear_credentials import ClearCredentials
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.seams import ANONYMOUS_PEER, Address, PeerIdentity
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, running
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink


@dataclass
class Client:
    """The context of a request, and its connection."""

    host: str = "10.0.0.9"
    identity: PeerIdentity | None = None
    link: FakeLink = field(default_factory=FakeLink)

    def __post_init__(self) -> None:
        self.link.identity = self.identity

    @property
    def connection(self) -> Any:
        return self

    @property
    def peer(self) -> Address:
        return Address(self.host, 5000)


def note(credentials: ClearCredentials, client: Client) -> None:
    """Handle a request of the client."""
    handled = credentials.noted(lambda context, request: (context, request))
    context = cast(RequestContext, client)
    assert handled(context, b"body") == (client, b"body")


def test_the_line_names_the_client_and_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = FakeClock()
    credentials = ClearCredentials(clock)
    for _ in range(5):
        note(credentials, Client())
    note(credentials, Client("10.0.0.8"))
    clock.advance(INTERVAL_MS)
    note(credentials, Client())
    first, other, again = caplog.messages
    assert first.startswith("a client at 10.0.0.9:5000 sends credentials of users")
    assert "10.0.0.8" in other
    assert again == first + " (4 more like it were not logged)"


@pytest.mark.parametrize(
    "client",
    [
        Client("127.0.0.1"),
        Client("::1"),
        Client(identity=ANONYMOUS_PEER),
    ],
    ids=["this machine", "this machine by IPv6", "TLS"],
)
def test_other_requests_are_not_named(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    note(ClearCredentials(FakeClock()), client)
    assert caplog.messages == []


def test_both_kinds_of_ports_note_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(
        ClearCredentials, "note", lambda _, context: noted.append(str(context.peer))
    )
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=())
    with running(1, 1) as node:
        for port in (BROKER_PORT, CONTROLLERS_PORT):
            node.ask(node.connect(port), request, 0)
    assert len(noted) == 2
