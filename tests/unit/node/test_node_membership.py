"""The voters that a node's configuration names."""

from __future__ import annotations

import pytest

from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.node.peers.node_membership import own_voter
from quorate.quorum.raft.voter_history import key_of
from tests.unit.raft.harness import key


def controller(listeners: str, advertised: str | None = None) -> NodeConfig:
    overrides = {
        "process.roles": "controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER,SECOND",
        "controller.quorum.bootstrap.servers": "c1:9093",
        "listeners": listeners,
        "log.dirs": "/data",
    }
    if advertised is not None:
        overrides["advertised.listeners"] = advertised
    return load(None, environment={}, overrides=overrides, hostname="here")


@pytest.mark.parametrize(
    ("listeners", "advertised", "endpoints"),
    [
        ("CONTROLLER://c1:9093", None, [("CONTROLLER", "c1", 9093)]),
        ("CONTROLLER://0.0.0.0:9093", "CONTROLLER://c1:19093", [("CONTROLLER", "c1", 19093)]),
        ("CONTROLLER://:9093", None, [("CONTROLLER", "here", 9093)]),
        (
            "CONTROLLER://c1:9093,SECOND://0.0.0.0:9094",
            "SECOND://c2:9095",
            [("CONTROLLER", "c1", 9093), ("SECOND", "c2", 9095)],
        ),
    ],
)
def test_a_controller_describes_itself_as_others_reach_it(
    listeners: str, advertised: str | None, endpoints: list[tuple[str, str, int]]
) -> None:
    """The address is the advertised one, as in `storage format`. Once it was the address that the
    controller binds, and other nodes connected to 0.0.0.0, which is their own host."""
    mine = own_voter(controller(listeners, advertised), key(1))
    assert mine is not None
    assert [(each.name, each.host, each.port) for each in mine.endpoints] == endpoints
    assert key_of(mine) == key(1)


def test_a_controller_on_a_free_port_cannot_describe_itself() -> None:
    assert own_voter(controller("CONTROLLER://c1:0"), key(1)) is None
