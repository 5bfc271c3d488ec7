"""The rule that TLS configs are set through their own broker.

Only that broker can check them (`broker/kafka/admin/tls_changes.py`). A controller therefore
refuses a client that sets them at the controller's own port, and a broker that forwards those of
another node. It accepts a deletion, so that an operator can remove them while the broker is down.
"""

from __future__ import annotations

from quorate.config.dynamic_tls_keys import dynamic_tls_key
from quorate.quorum.metadata.image import BROKER_RESOURCE
from quorate.quorum.protocol.schemas.configs import (
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
)

DELETE = 1
"""Kafka's code of the operation that deletes a config."""


def unchecked_tls(request: object, broker_id: int | None = None) -> str | None:
    """Return the reason to refuse a request, or None. `broker_id` is the broker that forwards it,
    or None for a client at the controller's port."""
    if not isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest):
        return None
    for resource in request.resources:
        own = broker_id is not None and resource.resource_name == str(broker_id)
        if resource.resource_type != BROKER_RESOURCE or own:
            continue
        for each in resource.configs:
            deletes = getattr(each, "config_operation", None) == DELETE
            if not deletes and dynamic_tls_key(each.name) is not None:
                return (
                    "Only a broker can check its TLS configs. Send the change to the broker that "
                    "it is for, without configs of others"
                )
    return None
