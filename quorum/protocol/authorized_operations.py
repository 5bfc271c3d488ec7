"""The operations that a client may perform on a resource, as the bit fields of KIP-430.

There is no authorizer, so each bit field contains all operations of its kind of resource.
"""

from __future__ import annotations

from quorate.quorum.protocol.acl_codes import Operation


def bit_field(*operations: Operation) -> int:
    """Return the bit field in which the bit of each operation is set."""
    return sum(1 << operation for operation in operations)


NOT_REQUESTED = -(1 << 31)
"""The bit field in a response if the request did not ask for the operations."""
TOPIC_OPERATIONS = bit_field(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = bit_field(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
GROUP_OPERATIONS = bit_field(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
