"""One node with an authorizer, of either program, whose clients are anonymous or log in with PLAIN.

The listener PLAINTEXT serves anonymous clients, and SASL serves users. The controller's port that
the tests use serves anonymous clients. Kafka's nodes themselves need permissions, so Kafka's node
logs in at a listener of its own (NODES), and is a super user. Quorate's nodes need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorate.cli.nodes.cluster_dir import free_ports
from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from tests.clients.test_sasl import PLAIN
from tests.golden.nodes import KAFKA, Program
from tests.kafka.one_node import Connection, OneNode

ADMIN, NODE = "admin", "node"
"""The super users."""
PASSWORD = "secret"
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2


class SecuredNode(OneNode):
    """One process of `program` with an authorizer. `users` can log in at the listener SASL."""

    def __init__(self, root: Path, program: Program, users: Sequence[str], *settings: str) -> None:
        passwords = " ".join(f'user_{each}="{PASSWORD}"' for each in (ADMIN, NODE, *users))
        login = f'{PLAIN} username="{NODE}" password="{PASSWORD}" {passwords};'
        super().__init__(
            root,
            program,
            f"authorizer.class.name={STANDARD_AUTHORIZER}",
            f"super.users=User:{ADMIN};User:{NODE}",
            "sasl.enabled.mechanisms=PLAIN",
            f"listener.name.sasl.plain.sasl.jaas.config={login}",
            *(self._of_kafkas_node(login) if program is KAFKA else ()),
            *settings,
        )
        self.sasl_port, self._nodes_port = free_ports(2)

    @staticmethod
    def _of_kafkas_node(login: str) -> tuple[str, ...]:
        return (
            "inter.broker.listener.name=SASL",
            "sasl.mechanism.inter.broker.protocol=PLAIN",
            "sasl.mechanism.controller.protocol=PLAIN",
            f"listener.name.nodes.plain.sasl.jaas.config={login}",
        )

    def listeners(self) -> str:
        """Return the listeners and their protocols."""
        names = {"PLAINTEXT": self.port, "SASL": self.sasl_port, "CONTROLLER": self.controller_port}
        protocols = {"PLAINTEXT": "PLAINTEXT", "SASL": "SASL_PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        controllers = "CONTROLLER"
        if self.program is KAFKA:
            names["NODES"] = self.controller_port
            names["CONTROLLER"] = self._nodes_port
            protocols["NODES"] = "SASL_PLAINTEXT"
            controllers = "NODES,CONTROLLER"
            self.anonymous_controller_port = self._nodes_port
        else:
            protocols["REPLICATION"] = "PLAINTEXT"
            self.anonymous_controller_port = self.controller_port
        addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in names.items())
        pairs = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
        return (
            f"listeners={addresses}\n"
            f"listener.security.protocol.map={pairs}\n"
            f"controller.listener.names={controllers}\n"
        )

    def connect(self, *, controller: bool = False) -> Connection:
        """Connect without an authentication."""
        return Connection(self.anonymous_controller_port if controller else self.port)

    def log_in(self, user: str) -> Connection:
        """Connect, and log in as one of the users."""
        found = Connection(self.sasl_port)
        found.ask(SaslHandshakeRequest(mechanism="PLAIN"), HANDSHAKE_VERSION)
        token = f"\0{user}\0{PASSWORD}".encode()
        answer = found.ask(SaslAuthenticateRequest(auth_bytes=token), AUTHENTICATE_VERSION)
        assert answer is not None and not answer.error_code, answer  # type: ignore[attr-defined]
        return found
