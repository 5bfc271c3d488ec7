"""The controllers that the console asks if no broker answers.

They are those of --bootstrap-controller. Without this option, the configs of a broker name them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import NotReachable
from quorate.cli.status.cluster_status import Status
from quorate.cli.status.explanations import Explanations
from quorate.cli.status.node_answers import Place
from quorate.cli.status.outage import (
    ASK_CONTROLLERS,
    BROKER,
    KnownNodes,
    configured_controllers,
    status_from_controllers,
)
from quorate.config.key import ConfigError
from quorate.config.listeners import parse_servers

Servers = tuple[tuple[str, int], ...]
MAX_ASKED = 3
"""The most brokers whose configs are read."""


class KnownControllers:
    """The addresses of controllers, and of the brokers that were seen last. One thread uses it."""

    def __init__(self, given: KnownNodes) -> None:
        """`given` has the controllers of --bootstrap-controller."""
        self._known = given
        self._are_given = bool(given.controllers)
        self._is_outage = True

    def learn(self, admin: Admin, status: Status) -> None:
        """Note the brokers of a status. Read the configs of a broker if this is the first status
        after the start or after an outage."""
        brokers = tuple(
            Place(BROKER, host, port, each.id)
            for each in status.brokers
            for host, port in servers_in([each.address])
        )
        self._known = replace(self._known, brokers=brokers)
        if self._is_outage and not self._are_given:
            up = [each.id for each in status.brokers if each.state == "up"]
            found = configured_controllers(admin, up[:MAX_ASKED])
            self._known = replace(self._known, controllers=found or self._known.controllers)
        self._is_outage = False

    def read(self, admin: Admin, failure: str, explanations: Explanations) -> Status:
        """Return the status as the controllers know it. `failure` says why no broker answers. Raise
        NotReachable if no controller is known, or if none answers."""
        self._is_outage = True
        if not self._known.controllers:
            raise NotReachable(f"{failure}. {ASK_CONTROLLERS}")
        return status_from_controllers(admin, self._known, failure, explanations)


def servers_in(addresses: Sequence[str]) -> Servers:
    """Return (host, port) of each HOST:PORT, without those that no client can connect to. A broker
    may have no address for this client."""
    found: list[tuple[str, int]] = []
    for each in addresses:
        with suppress(ConfigError):
            found += parse_servers("", [each])
    return tuple(found)
