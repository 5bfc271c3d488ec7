"""Safeguards of identities. A broker serves a user only while the credential and the session exist.
A node believes another node only if that node proves its id, and only when it speaks for itself."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.node.peers import node_requests
from quorate.quorum.rpc.kafka import sasl_connection
from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from quorate.quorum.rpc.node_identity import NodeProof
from tests.sim.ablations import identity_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Scene, Script
from tests.sim.adversary import impostors
from tests.sim.world.shape import Shape


def keep_sessions(self: SaslGate, keys: Iterable[object]) -> None: ...


ABLATIONS = (
    Ablation(
        "sessions-of-removed-credentials",
        "a broker that replays the removal of a credential no longer serves its open connections",
        SaslGate,
        "credentials_removed",
        keep_sessions,
        Script(scripts.users_log_in_while_their_credentials_are_removed),
        "after it had replayed the removal",
    ),
    Ablation(
        "end-of-sessions",
        "a broker closes a connection at a request after the end of its session (KIP-368)",
        sasl_connection,
        "session_ms",
        lambda *_: None,
        Script(scripts.users_log_in_while_their_credentials_are_removed),
        "after the end of the session",
    ),
    Ablation(
        "node-identity",
        "a node must prove the id of its Hello, by the URI in its certificate",
        NodeProof,
        "refusal",
        lambda *_: "",
        Scene(impostors.a_stranger_tells_every_lie, shape=Shape(identities=True)),
        "is called committed but durable only on",
    ),
    Ablation(
        "ids-of-the-sender",
        "a node refuses a Raft request that speaks for another replica than its sender",
        node_requests,
        "check_speaker",
        lambda *_: None,
        Scene(impostors.a_node_acknowledges_for_another_one, shape=Shape(identities=True)),
        "is called committed but durable only on",
    ),
)
