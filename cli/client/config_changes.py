"""Changes to the configs of one resource (IncrementalAlterConfigs, KIP-339).

A Kafka broker accepts the configs of a broker only for itself, so the request goes to that broker.
If it cannot be reached, or if the bootstrap servers are controllers, the request goes to any
node."""

from __future__ import annotations

from contextlib import suppress

from quorate.cli.client.admin import BROKER_ENDPOINT, Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.quorum.metadata.image import BROKER_RESOURCE
from quorate.quorum.protocol.schemas import configs as schemas


def alter_configs(
    admin: Admin, resource: schemas.IncrementalAlterConfigsResource, what: str = ""
) -> None:
    """Apply the changes. Raise Refused on the first error, NotReachable if no node answers.

    `what` names the resource in the error message. The request is sent again after a lost
    connection, because a repetition is harmless."""
    for result in answer_of(admin, resource).responses:
        check(result.error_code, result.error_message, what)


def answer_of(
    admin: Admin, resource: schemas.IncrementalAlterConfigsResource
) -> schemas.IncrementalAlterConfigsResponse:
    """Send the changes to the right node and return its response, which may contain errors."""
    request = schemas.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    name = resource.resource_name
    one_broker = resource.resource_type == BROKER_RESOURCE and name.isdecimal()
    if one_broker and admin.endpoint_type == BROKER_ENDPOINT:
        with suppress(ConnectionLost):
            return admin.ask_node(int(name), request, schemas.IncrementalAlterConfigsResponse)
    return admin.change(
        request,
        schemas.IncrementalAlterConfigsResponse,
        lambda answer: [each.error_code for each in answer.responses],
        repeatable=True,
    )
