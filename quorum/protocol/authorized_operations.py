"""The operations that a client may perform on a resource, as the bit fields of KIP-430.

Without an authorizer a response has all operations of its type of resource: TOPIC_OPERATIONS,
CLUSTER_OPERATIONS or GROUP_OPERATIONS. With one, `quorum/authorization/permits.py` chooses.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.protocol.acl_codes import Operation, ResourceType

SUPPORTED: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.DESCRIBE,
        Operation.WRITE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that exist for each type of resource besides ALL, in the order of Kafka's tool. No
response lists those of the last three types."""
NOT_REQUESTED = -(1 << 31)
"""The bit field in a response if the request did not ask for the operations."""


def bit_field(operations: Iterable[Operation]) -> int:
    """Return the bit field in which the bit of each operation is set."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bit_field(SUPPORTED[ResourceType.TOPIC])
CLUSTER_OPERATIONS = bit_field(SUPPORTED[ResourceType.CLUSTER])
GROUP_OPERATIONS = bit_field(SUPPORTED[ResourceType.GROUP])
