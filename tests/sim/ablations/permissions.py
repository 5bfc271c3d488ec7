"""Safeguards of permissions: an action that an acknowledged DENY forbids stays forbidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.broker.replication.fetches.consumer_fetches import ConsumerFetches, Fetch, ReadSome
from quorate.quorum.authorization.authorizer import Authorizer
from quorate.quorum.authorization.decision import Client
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.controller import rules
from quorate.quorum.controller.state.decision_steps import Outcome
from quorate.quorum.controller.state.messages import EnvelopeRequest
from quorate.quorum.node.controller import envelopes
from quorate.quorum.protocol.wire import Message
from tests.ports.secured import ROOT
from tests.sim.ablations import permission_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script


def decide_unchecked(
    permits: Permits, request: Any, version: int, rule: Callable[[Any], Outcome]
) -> Outcome:
    return rule(request)


def believe_the_broker(
    authorizer: Authorizer, envelope: EnvelopeRequest, request: Message
) -> Client:
    return authorizer.client(ROOT, "127.0.0.1")


def read_unchecked(self: ConsumerFetches, fetch: Fetch) -> ReadSome:
    return self._read_some


ABLATIONS = (
    Ablation(
        "controller-permissions",
        "the controller checks a forwarded request again, on the image on which it decides",
        rules,
        "authorized",
        decide_unchecked,
        Script(scripts.a_denied_client_deletes_topics_while_leaders_die),
        "a denied client deleted a topic",
    ),
    Ablation(
        "envelope-principal",
        "the controller decides for the principal of the client, not of the broker (KIP-590)",
        envelopes,
        "client_of_envelope",
        believe_the_broker,
        Script(scripts.a_denied_client_deletes_topics_while_leaders_die),
        "a denied client deleted a topic",
    ),
    Ablation(
        "permissions-of-a-session",
        "a broker checks the partitions of a fetch session with each Fetch",
        ConsumerFetches,
        "_read_of",
        read_unchecked,
        Script(scripts.a_denied_client_continues_its_fetch_session),
        "a denied client read records",
    ),
)
