"""A request between nodes speaks for its sender only."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.node.peers.node_requests import NodeRequests
from quorate.quorum.node.peers.speaker import SPEAKER, check_speaker
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.messages import RPCS, VERSIONS
from quorate.quorum.seams import Address, ProtocolError
from tests.unit.rpc.kafka.fakes import FakeClock

DIRECTORY, OTHER_DIRECTORY = Uuid(b"d" * 16), Uuid(b"e" * 16)
PEER = Peer(
    Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=7,
        directory_id=DIRECTORY,
        roles=("broker", "controller"),
        incarnation_id=Uuid(b"i" * 16),
    ),
    Address("10.0.0.7", 1234),
)
NAMING = [cls for cls, rule in SPEAKER.items() if rule.field is not None]
OF_A_ROLE = [cls for cls, rule in SPEAKER.items() if rule.role is not None]


def request(cls: type, node_id: int, directory: Uuid = DIRECTORY) -> Any:
    """Return a request of this class with no field but that of its sender."""
    made: Any = object.__new__(cls)
    field = SPEAKER[cls].field
    if field is not None:
        type_of = {each.name: str(each.type) for each in fields(cls)}[field]
        sender = ReplicaKey(node_id, directory) if "ReplicaKey" in type_of else node_id
        object.__setattr__(made, field, sender)
    return made


def test_each_request_between_nodes_has_a_rule() -> None:
    assert set(SPEAKER) == {rpc.request for rpc in RPCS} - {Hello, None}


@pytest.mark.parametrize("cls", NAMING, ids=lambda cls: cls.__name__)
def test_a_request_for_another_node_is_refused(cls: type) -> None:
    check_speaker(PEER, request(cls, 7))
    with pytest.raises(ProtocolError, match=r"speaks for \w+ 8.*, but its sender is 7"):
        check_speaker(PEER, request(cls, 8))


@pytest.mark.parametrize("cls", NAMING, ids=lambda cls: cls.__name__)
def test_a_request_for_another_directory_is_refused(cls: type) -> None:
    other = request(cls, 7, OTHER_DIRECTORY)
    if isinstance(getattr(other, SPEAKER[cls].field or ""), ReplicaKey):
        with pytest.raises(ProtocolError, match="speaks for"):
            check_speaker(PEER, other)


@pytest.mark.parametrize("cls", OF_A_ROLE, ids=lambda cls: cls.__name__)
def test_a_request_needs_the_role_of_its_sender(cls: type) -> None:
    check_speaker(PEER, request(cls, 7))
    roles = tuple(each for each in PEER.hello.roles if each != SPEAKER[cls].role)
    with pytest.raises(ProtocolError, match=f"its sender 7 has the roles {roles[0]}"):
        check_speaker(Peer(replace(PEER.hello, roles=roles), PEER.address), request(cls, 7))


@pytest.mark.parametrize("cls", NAMING, ids=lambda cls: cls.__name__)
def test_no_handler_gets_a_forged_request(cls: type) -> None:
    handled: list[Any] = []
    failed: list[BaseException] = []
    requests = NodeRequests(FakeClock(), failed.append)
    handle = requests.guarded(lambda peer, message, reply: handled.append(message))
    own = request(cls, 7)
    handle(PEER, own, handled.append)
    with pytest.raises(ProtocolError):
        handle(PEER, request(cls, 8), handled.append)
    assert handled == [own]
    assert not failed
