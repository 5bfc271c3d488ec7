"""Safeguards of sessions: a user is served only while the credential and the session exist."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.rpc.kafka.sasl_connection import SaslConnection
from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from tests.sim.ablations import identity_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script

complete = SaslConnection._complete


def keep_sessions(self: SaslGate, keys: Iterable[object]) -> None: ...


def never_expires(self: SaslConnection, user: str) -> None:
    complete(self, user)
    self._expires_ms = None


ABLATIONS = (
    Ablation(
        "sessions-of-removed-credentials",
        "a broker that replays the removal of a credential serves its open connections no more",
        SaslGate,
        "credentials_removed",
        keep_sessions,
        Script(scripts.users_log_in_while_their_credentials_are_removed),
        "after it had replayed the removal",
    ),
    Ablation(
        "end-of-sessions",
        "a connection is closed at a request after the end of its session (KIP-368)",
        SaslConnection,
        "_complete",
        never_expires,
        Script(scripts.users_log_in_while_their_credentials_are_removed),
        "after the end of the session",
    ),
)
