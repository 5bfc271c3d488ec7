"""The permissions of the client of one request, by one image of the cluster."""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.authorization.authorizer import ANY_NAME, Authorizer
from quorate.quorum.authorization.decision import (
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    Action,
    Client,
    Decision,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.acl_codes import CLUSTER_NAME, Operation, ResourceType
from quorate.quorum.protocol.authorized_operations import SUPPORTED, bit_field
from quorate.quorum.protocol.errors import ErrorCode

Audit = Callable[[Client, Action, Decision], None]
"""Records a decision that refused or permitted a request."""
DENIED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""Kafka's error for a resource of each type that the client may not use."""


class Permits:
    """The permissions of one client. `image` has the ACLs and the names of the topics."""

    __slots__ = ("_audit", "_authorizer", "client", "image")

    def __init__(
        self, authorizer: Authorizer, image: MetadataImage, client: Client, audit: Audit
    ) -> None:
        """`audit` hears of every decision, except of those that only filter a list."""
        self._authorizer = authorizer
        self._audit = audit
        self.image = image
        self.client = client

    def allows(
        self, operation: Operation, resource_type: ResourceType, name: str, *, audited: bool = True
    ) -> bool:
        """Return True if the client may perform the operation on the resource. A decision that is
        not `audited` only filters a list."""
        action = Action(operation, resource_type, name)
        decision = self._authorizer.decide(self.image.acls, self.client, action)
        if decision is DEFAULT_ALLOW and self.image.last.offset < 0:
            decision = DEFAULT_DENY  # no record is replayed yet, so the ACLs are unknown
        if audited:
            self._audit(self.client, action, decision)
        return decision.allowed

    def topic(self, operation: Operation, name: str) -> bool:
        """Return True if the client may perform the operation on the topic."""
        return self.allows(operation, ResourceType.TOPIC, name)

    def cluster(self, operation: Operation, *, audited: bool = True) -> bool:
        """Return True if the client may perform the operation on the cluster."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, audited=audited)

    def any_topic(self, operation: Operation) -> IncrementalWork[bool]:
        """Return True if the client may perform the operation on some topic (KIP-679)."""
        if self.image.last.offset < 0:  # the ACLs are unknown
            return self.allows(operation, ResourceType.TOPIC, ANY_NAME, audited=False)
        acls = self.image.acls
        kind = ResourceType.TOPIC
        return (yield from self._authorizer.permits_any(acls, self.client, operation, kind))

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of the topic, or None if there is no topic with this id."""
        topic = self.image.topics.get(topic_id)
        return None if topic is None else topic.name

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """Return the bit field of the operations that the client may perform (KIP-430)."""
        return bit_field(
            operation
            for operation in SUPPORTED[resource_type]
            if self.allows(operation, resource_type, name, audited=False)
        )
