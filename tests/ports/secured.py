"""A cluster with an authorizer on virtual time, and connections with any principal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quorate.config.authorizer_keys import STANDARD_AUTHORIZER
from quorate.quorum.principal import USER, Principal
from quorate.quorum.protocol.acl_codes import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from quorate.quorum.protocol.schemas import acls
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address, PeerIdentity
from tests.ports.node import PortCluster, Raw, running
from tests.ports.requests import World

ROOT, ALICE, NOBODY = (Principal(USER, name) for name in ("root", "alice", "nobody"))
CLUSTER, TOPIC, GROUPS = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
Need = tuple[ResourceType, Operation]


class Secured:
    """A cluster with an authorizer, and connections with any principal."""

    def __init__(self, node: PortCluster) -> None:
        self.node = node
        self.world = World(0)

    def ask(
        self, principal: Principal, request: Message, version: int, port: Address | None = None
    ) -> Message:
        """Send the request as this principal."""
        raw = self.connect(principal, port)
        answer = self.node.ask(raw, request, version)
        raw.link.abort()
        return answer

    def connect(self, principal: Principal, port: Address | None = None) -> Raw:
        """Connect to a port, by default that of the first broker."""
        self.node.host.identity = PeerIdentity(principal, verified=True)
        return self.node.connect(port or self.node.broker_port)

    def allow(self, *needs: Need, principal: Principal = ALICE, deny: bool = False) -> None:
        """Add ACLs on all names."""
        if not needs:
            return
        kind = PermissionType.DENY if deny else PermissionType.ALLOW
        request = acls.CreateAclsRequest(
            creations=tuple(
                acls.AclCreation(
                    resource_type=resource,
                    resource_name=CLUSTER_NAME if resource == CLUSTER else "*",
                    resource_pattern_type=PatternType.LITERAL,
                    principal=str(principal),
                    host="*",
                    operation=operation,
                    permission_type=kind,
                )
                for resource, operation in needs
            )
        )
        answer: Any = self.ask(ROOT, request, 3)
        assert {each.error_code for each in answer.results} == {0}, answer
        self.node.run(0.2)

    def forget(self) -> None:
        """Remove all ACLs."""
        everything = acls.DeleteAclsFilter(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=Operation.ANY,
            permission_type=PermissionType.ANY,
        )
        self.ask(ROOT, acls.DeleteAclsRequest(filters=(everything,)), 3)
        self.node.run(0.2)


@contextmanager
def secured_cluster(controllers: int = 1, **settings: str) -> Iterator[Secured]:
    """Run a cluster. The principal of a connection is what a listener would authenticate."""
    properties = {
        "authorizer_class_name": STANDARD_AUTHORIZER,
        "super_users": "User:root",
        "auto_create_topics_enable": "true",
    }
    with running(controllers, 1, **{**properties, **settings}) as node:
        found = Secured(node)
        node.host.identity = PeerIdentity(ROOT, verified=True)
        found.world = node.prepared()
        yield found
