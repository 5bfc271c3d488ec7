"""The client of the nodes' fault sockets (`quorum/faults/control.py`)."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import ClusterDir
from quorate.quorum.faults.control import short_enough
from quorate.quorum.faults.rules import Rules, rules_to_json

TIMEOUT_S = 5.0
"""Time, in s, after which one wait for a socket fails."""
LEASE_MS = 10_000
"""The time, in ms, after which faults end by themselves unless the run renews them."""
HEARTBEAT = "BrokerHeartbeatRequest"
"""The class of the message with which a broker extends its session."""


@dataclass(frozen=True, slots=True)
class FaultSockets:
    """The fault sockets of a local cluster's nodes.

    Each call blocks until the node has answered. TIMEOUT_S bounds each wait for the socket. A call
    raises Refused if the node does not answer or refuses the rules. `inject` and `heal` replace all
    previous rules of the node. The rules of `inject` end LEASE_MS after the last call of `inject`
    or `renew`."""

    directory: ClusterDir

    def inject(self, node_id: int, rules: dict[str, Any]) -> None:
        """Apply the rules of `quorum/faults/rules.py`."""
        self._ask(node_id, {"rules": rules, "lease_ms": LEASE_MS})

    def renew(self, node_ids: Sequence[int]) -> None:
        """Renew the leases of the nodes' rules. A node that does not answer is left out."""
        for node_id in node_ids:
            try:
                self._ask(node_id, {"lease_ms": LEASE_MS})
            except Refused:
                continue

    def heal(self, node_id: int) -> None:
        """End all faults of the node."""
        self._ask(node_id, {"rules": {}})

    def affected(self, node_id: int, rules: dict[str, Any]) -> int:
        """Return the number of frames and connects that rules of these kinds have affected.

        The count begins with the start of the node's process."""
        counts: dict[str, int] = self._ask(node_id, {})["affected"]
        return sum(counts.get(name, 0) for name in rules)

    def in_force(self, node_id: int) -> dict[str, Any]:
        """Return the rules of the node that cause a fault, by name."""
        rules: dict[str, Any] = self._ask(node_id, {})["rules"]
        without: dict[str, Any] = json.loads(rules_to_json(Rules()))
        return {name: value for name, value in rules.items() if value != without[name]}

    def last_heartbeat_ms(self, node_id: int) -> int:
        """Return the wall-clock time in ms at which a heartbeat last left the node.

        Raise Refused if the node has sent none."""
        sent: dict[str, int] = self._ask(node_id, {})["last_sent_ms"]
        if HEARTBEAT not in sent:
            raise Refused(f"node {node_id} has sent no heartbeat since its start")
        return sent[HEARTBEAT]

    def _ask(self, node_id: int, request: dict[str, Any]) -> dict[str, Any]:
        path = self.directory.faults_socket(node_id)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(TIMEOUT_S)
                with short_enough(path) as name:
                    link.connect(name)
                link.sendall(json.dumps(request).encode() + b"\n")
                with link.makefile("rb") as lines:
                    answer: dict[str, Any] = json.loads(lines.readline())
        except (OSError, ValueError) as error:
            raise Refused(
                f"{path}: node {node_id} does not answer ({error}); this step needs a cluster "
                "started by `quorate up --faults`"
            ) from None
        if "error" in answer:
            raise Refused(f"node {node_id}: {answer['error']}")
        return answer
