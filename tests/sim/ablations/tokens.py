"""Safeguards of bearer tokens: a token admits only the user that its provider has named, only to
this service, and only until it expires."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

from quorate.broker.kafka import token_listener
from quorate.quorum.rpc.kafka import sasl_connection
from quorate.quorum.sasl import token_claims
from tests.sim.ablations import token_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script


def without_signature(token: str, _: object) -> Any:
    payload = token.split(".")[1]
    return json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def never_with_the_token(max_reauth_ms: int, _: object) -> int | None:
    return max_reauth_ms or None


ABLATIONS = (
    Ablation(
        "signature-of-tokens",
        "a broker accepts a token only with the signature of its provider",
        token_listener,
        "verified_claims",
        without_signature,
        Script(scripts.clients_show_tokens),
        "a token with the signature of a stranger was accepted",
    ),
    Ablation(
        "audience-of-tokens",
        "a broker refuses a token that the provider has issued for another service",
        token_claims,
        "_is_for",
        lambda *_: True,
        Script(scripts.clients_show_tokens),
        "a token for another service was accepted",
    ),
    Ablation(
        "end-of-tokens",
        "a session ends when its token expires",
        sasl_connection,
        "session_ms",
        never_with_the_token,
        Script(scripts.clients_show_tokens),
        "a client was served after the end of its token",
    ),
)
