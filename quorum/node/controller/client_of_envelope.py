"""The client for which a broker forwards a request (KIP-590)."""

from __future__ import annotations

from quorate.quorum.authorization.authorizer import Authorizer
from quorate.quorum.authorization.decision import Client
from quorate.quorum.controller.state.messages import NODE_PRINCIPAL, EnvelopeRequest
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.principal import USER, Principal
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import CreateTopicsRequest
from quorate.quorum.protocol.wire import Message


def client_of_envelope(
    authorizer: Authorizer, envelope: EnvelopeRequest, request: Message
) -> Client | None:
    """Return the client of an envelope, or None if the broker creates internal topics for itself,
    which needs no permissions.

    Raise RequestRefused if the envelope does not name its client, as those of earlier releases."""
    if envelope.principal_type == NODE_PRINCIPAL and creates_internal_topics(request):
        return None
    named = envelope.principal_type == USER and envelope.principal_name
    if not named or not envelope.client_host:
        raise RequestRefused(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the envelope does not name its client"
        )
    principal = Principal(envelope.principal_type, envelope.principal_name)
    return authorizer.client(principal, envelope.client_host)


def creates_internal_topics(request: Message) -> bool:
    """Return True if the request creates only internal topics."""
    return isinstance(request, CreateTopicsRequest) and all(
        each.name in INTERNAL_TOPICS for each in request.topics
    )
