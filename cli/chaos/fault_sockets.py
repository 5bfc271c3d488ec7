"""The client of the nodes' fault sockets (`quorum/faults/control.py`)."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any

from quorate.cli.client.errors import Refused
from quorate.cli.cluster_dir import ClusterDir
from quorate.quorum.faults.control import short_enough

TIMEOUT_S = 5.0
"""Time, in s, after which one wait for a socket fails."""
HEARTBEAT = "BrokerHeartbeatRequest"
"""The class of the message with which a broker extends its session."""


@dataclass(frozen=True, slots=True)
class FaultSockets:
    """The fault sockets of a local cluster's nodes.

    Each call blocks until the node has answered. TIMEOUT_S bounds each wait for the socket. A call
    raises Refused if the node does not answer or refuses the rules. `drop`, `hold` and `heal`
    replace all previous rules of the node."""

    directory: ClusterDir

    def drop(self, node_id: int, message: str) -> None:
        """Drop all messages of one type on the node's links, in both directions.

        `message` is the name of the message's class, such as HEARTBEAT."""
        self._ask(node_id, {"rules": {"drop": [message]}})

    def hold(self, node_id: int, peers: list[int]) -> None:
        """Hold all traffic between the node and the peers (node ids). No connection closes."""
        self._ask(node_id, {"rules": {"hold": peers}})

    def heal(self, node_id: int) -> None:
        """End all faults of the node."""
        self._ask(node_id, {"rules": {}})

    def last_heartbeat_ms(self, node_id: int) -> int:
        """Return the wall-clock time in ms at which a heartbeat last left the node.

        Raise KeyError if the node has sent none."""
        sent: int = self._ask(node_id, {})["last_sent_ms"][HEARTBEAT]
        return sent

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
