"""Kafka's codes of resource types, pattern types, operations and permissions of ACLs.

The code 0, UNKNOWN, and every other number that is not listed have no meaning in an ACL.
"""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """Kafka's ResourceType. ANY exists only in filters."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Kafka's PatternType. ANY and MATCH exist only in filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """Kafka's AclOperation. ANY exists only in filters."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    """Kafka's AclPermissionType. ANY exists only in filters."""

    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""The only name of a resource of the type CLUSTER."""
WILDCARD = "*"
"""The name that covers all resources of a type, and the host that covers all hosts."""
WILDCARD_PRINCIPAL = "User:*"
"""The principal that covers all principals."""


def name_of(codes: type[IntEnum], code: int) -> str:
    """Return Kafka's name of a code, such as TOPIC, or UNKNOWN."""
    try:
        return codes(code).name
    except ValueError:
        return "UNKNOWN"
