"""The authorizer of a node: it decides for its clients, and remembers decisions.

An `Authorizer` keeps the decisions of one set of ACLs. It drops all of them when it is asked about
another set. The ACLs are part of the image, so a decision is about exactly one offset of the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.authorization.decision import (
    DEFAULT_DENY,
    SUPER_USER,
    Action,
    Client,
    Decision,
    decide,
    permits_any,
)
from quorate.quorum.authorization.hosts import canonical_host
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.acls import EMPTY, AclSet
from quorate.quorum.principal import Principal
from quorate.quorum.protocol.acl_codes import Operation, ResourceType

MAX_CACHED = 10_000
"""Maximum number of decisions, and of clients, that an authorizer remembers."""
MAX_CACHED_CHARS = 256
"""Decisions about longer names are not remembered. A name in a request may have 32 KB, and a client
without permissions may send as many as it likes. No topic has such a name."""
ANY_NAME = "hardcode"
"""The name of a topic that Kafka checks before it looks for permissions of any topic."""


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """The keys super.users, as texts of principals, and allow.everyone.if.no.acl.found."""

    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False


class Authorizer:
    """Decides for the clients of one node. The event loop owns it, and no method blocks."""

    def __init__(self, settings: AuthorizerSettings) -> None:
        self.settings = settings
        self._acls = EMPTY
        self._decisions: dict[tuple[Client, Action], Decision] = {}
        self._any: dict[tuple[Client, Operation, ResourceType], bool] = {}
        self._clients: dict[tuple[Principal, str], Client] = {}

    def client(self, principal: Principal, host: str) -> Client:
        """Return the client as decisions see it. `host` is a text of its IP address."""
        client = self._clients.get((principal, host))
        if client is None:
            if len(self._clients) >= MAX_CACHED:
                self._clients.clear()
            client = Client(str(principal), canonical_host(host))
            self._clients[principal, host] = client
        return client

    def decide(self, acls: AclSet, client: Client, action: Action) -> Decision:
        """Return the decision about one action of the client, by `acls` and the settings."""
        if len(action.resource_name) > MAX_CACHED_CHARS:
            return self._decided(acls, client, action)
        if acls is not self._acls:
            self._forget(acls)
        decision = self._decisions.get((client, action))
        if decision is None:
            if len(self._decisions) >= MAX_CACHED:
                self._decisions.clear()
            decision = self._decided(acls, client, action)
            self._decisions[client, action] = decision
        return decision

    def permits_any(
        self, acls: AclSet, client: Client, operation: Operation, resource_type: ResourceType
    ) -> IncrementalWork[bool]:
        """Return True if the client may perform the operation on some resource of the type. The
        ACLs of the cluster may change between the steps, but the answer is about `acls`."""
        if self.decide(acls, client, Action(operation, resource_type, ANY_NAME)).allowed:
            return True
        key = client, operation, resource_type
        permitted = self._any.get(key)
        if permitted is None:
            permitted = yield from permits_any(acls, client, operation, resource_type)
            if acls is self._acls:
                if len(self._any) >= MAX_CACHED:
                    self._any.clear()
                self._any[key] = permitted
        return permitted

    def _decided(self, acls: AclSet, client: Client, action: Action) -> Decision:
        if client.principal in self.settings.super_users:
            return SUPER_USER
        if not action.resource_name:
            return DEFAULT_DENY
        return decide(acls, client, action, allow_everyone=self.settings.allow_everyone)

    def _forget(self, acls: AclSet) -> None:
        self._acls = acls
        self._decisions.clear()
        self._any.clear()
