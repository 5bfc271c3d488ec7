"""The audit log of an authorizer, in the lines of Kafka's StandardAuthorizer.

A refusal is logged at INFO, and a permission at DEBUG. A client can cause refusals as fast as it
sends requests, and chooses the names in them. Its refusals are therefore divided into LINES kinds
by API and action. Of each kind, one is logged in each interval, with the number of those that were
left out. Equal refusals are always of one kind.
"""

from __future__ import annotations

import logging
import zlib

from quorate.quorum.authorization.decision import Action, Client, Decision
from quorate.quorum.authorization.permits import Audit
from quorate.quorum.clipped import shown
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    name_of,
)
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.seams import Clock

LINES = 32
"""Maximum number of refusals of one client that are logged in the interval of `LogLimit`."""

logger = logging.getLogger("kafka.authorizer.logger")


class AuditLog:
    """The audit log of one port. It counts decisions for the metrics."""

    def __init__(self, clock: Clock) -> None:
        self._lines = LogLimit(clock)
        self.allowed = self.denied = 0

    def of_request(self, api_key: int) -> Audit:
        """Return the function that logs the decisions about one request."""

        def audit(client: Client, action: Action, decision: Decision) -> None:
            self._note(api_key, client, action, decision)

        return audit

    def _note(self, api_key: int, client: Client, action: Action, decision: Decision) -> None:
        if decision.allowed:
            self.allowed += 1
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("%s", line(api_key, client, action, decision))
            return
        self.denied += 1
        if logger.isEnabledFor(logging.INFO):
            left_out = self._lines.passes((client, kind_of(api_key, action)))
            if left_out is not None:
                logger.info("%s%s", line(api_key, client, action, decision), left_out)


def kind_of(api_key: int, action: Action) -> int:
    """Return the kind of a refusal of one client, from 0 to LINES - 1."""
    fields = f"{api_key} {action.operation} {action.resource_type} {action.resource_name}"
    return zlib.crc32(fields.encode()) % LINES


def line(api_key: int, client: Client, action: Action, decision: Decision) -> str:
    """Return Kafka's line about a decision. Texts of clients are escaped and cut."""
    kind = action.resource_type.name.title().replace("_", "")
    return (
        f"Principal = {shown(client.principal)} is {'Allowed' if decision.allowed else 'Denied'} "
        f"operation = {action.operation.name} from host = {client.host} "
        f"on resource = {kind}:LITERAL:{shown(action.resource_name)} "
        f"for request = {APIS[api_key].name} with resourceRefCount = 1 "
        f"based on rule {rule_text(decision)}"
    )


def rule_text(decision: Decision) -> str:
    """Return Kafka's text of the rule that led to a decision."""
    if not isinstance(decision.rule, Acl):
        return decision.rule
    acl = decision.rule
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={name_of(ResourceType, acl.resource_type)}, "
        f"resourceName={shown(acl.resource_name)}, "
        f"patternType={name_of(PatternType, acl.pattern_type)}, "
        f"principal={shown(acl.principal)}, host={shown(acl.host)}, "
        f"operation={name_of(Operation, acl.operation)}, "
        f"permissionType={name_of(PermissionType, acl.permission_type)}))"
    )
