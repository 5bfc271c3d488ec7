"""The links of a cluster under test: proxies between every two ends, and their faults."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quorate.quorum.seams import Address
from tests.system.faults import CLIENTS, Action, linked
from tests.system.proxies import HOST

DELAY_MS = 150
RULES: dict[Action, tuple[dict[str, Any], dict[str, Any]]] = {
    Action.CUT: ({"cut": True}, {"cut": True}),
    Action.HOLD: ({"there": True, "back": True}, {"there": True, "back": True}),
    Action.ONE_WAY: ({"there": True}, {"back": True}),
    Action.DELAY: ({"delay_ms": DELAY_MS}, {"delay_ms": DELAY_MS}),
    Action.CONNECT: ({}, {}),
}
"""The rule of connections that the node opens to its peers, and of those that they open to it."""


class Links:
    """The process of the proxies. `close` ends it.

    Clients reach a broker at the address that it advertises, which is that of a proxy. Nodes
    translate the address of each other node to a proxy of their own (`translation`). Therefore the
    links between two ends can be hurt apart from all others, and one direction of them, too.
    """

    def __init__(self, controllers: Sequence[int], brokers: Sequence[int]) -> None:
        ends = (CLIENTS, *controllers, *brokers)
        self._pairs = [
            (source, target)
            for source in ends
            for target in (*controllers, *brokers)
            if source == target or linked(source, target, brokers)
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.system.proxies"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        asked = {"pairs": [[source, target] for source, target in self._pairs]}
        self._ports = dict(zip(self._pairs, self._ask(asked)["ports"], strict=True))

    def advertised(self, broker_id: int) -> Address:
        """Return the address at which clients reach a broker."""
        return Address(HOST, self._ports[CLIENTS, broker_id])

    def connect(self, for_nodes: Mapping[int, Address], for_clients: Mapping[int, Address]) -> None:
        """Let the proxies connect to the addresses at which the nodes listen, by node."""
        targets = [
            [source, target, (for_clients if source == CLIENTS else for_nodes)[target].port]
            for source, target in self._pairs
        ]
        self._ask({"targets": targets})

    def translation(self, source: int, for_nodes: Mapping[int, Address]) -> dict[str, int]:
        """Return the port of the node's own proxy for the address of each node."""
        return {str(address): self._ports[source, each] for each, address in for_nodes.items()}

    def act(self, action: Action, node_id: int, peers: Sequence[int]) -> int:
        """Hurt or mend the links. Return the number of effects that they had since the last act."""
        from_node, to_node = RULES[action]
        links = []
        for peer in peers:
            for pair, rule in (((node_id, peer), from_node), ((peer, node_id), to_node)):
                if pair in self._ports:
                    links.append([*pair, rule])
        effects: int = self._ask({"links": links})["effects"]
        return effects

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def write_translations(links: Links, for_nodes: Mapping[int, Address], file: Path) -> None:
    """Write the file that the nodes read (`faulty_node`)."""
    file.write_text(json.dumps({each: links.translation(each, for_nodes) for each in for_nodes}))
