"""Changing the configs of one resource. Kafka's brokers take their own only, so a broker is asked
for itself; if it cannot be, or its controllers are asked, any node is."""

from __future__ import annotations

from contextlib import suppress

from quorate.cli.client.admin import BROKER_ENDPOINT, Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.quorum.metadata.image import BROKER_RESOURCE
from quorate.quorum.rpc.kafka.schemas import configs as schemas


def alter_configs(
    admin: Admin, resource: schemas.IncrementalAlterConfigsResource, what: str = ""
) -> None:
    """Twice is the same as once, so a lost answer is asked for again."""
    for result in answer_of(admin, resource).responses:
        check(result.error_code, result.error_message, what)


def answer_of(
    admin: Admin, resource: schemas.IncrementalAlterConfigsResource
) -> schemas.IncrementalAlterConfigsResponse:
    request = schemas.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    name = resource.resource_name
    one_broker = resource.resource_type == BROKER_RESOURCE and name.isdigit()
    if one_broker and admin.endpoint_type == BROKER_ENDPOINT:
        with suppress(ConnectionLost):
            return admin.ask_node(int(name), request, schemas.IncrementalAlterConfigsResponse)
    return admin.change(
        request,
        schemas.IncrementalAlterConfigsResponse,
        lambda answer: [each.error_code for each in answer.responses],
        repeatable=True,
    )
