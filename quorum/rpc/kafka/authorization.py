"""The authorizer of one Kafka port: it checks requests before their handlers see them.

A port without an authorizer uses its handlers directly, so that its requests cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorate.quorum.authorization.authorizer import Authorizer
from quorate.quorum.authorization.check import Check, Checked
from quorate.quorum.authorization.decision import Client
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.controller.state.context import Caller
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.principal import Principal
from quorate.quorum.rpc.kafka.amended_context import AmendedContext
from quorate.quorum.rpc.kafka.audit_log import AuditLog
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.server_state import Handler


class PortAuthorizer:
    """Checks the requests of one port by the committed image of the node."""

    def __init__(
        self, authorizer: Authorizer, image: Callable[[], MetadataImage], audit: AuditLog
    ) -> None:
        self.authorizer = authorizer
        self._image = image
        self.audit = audit

    def permits(self, context: RequestContext) -> Permits:
        """Return the permissions of the client that sent the request, by the newest image."""
        return self.permits_for(context.principal, context.peer.host, context.api_key)

    def permits_for(self, principal: Principal, host: str, api_key: int) -> Permits:
        """Return the permissions of a principal at a host, by the newest image. The audit log
        names the API."""
        client = self.authorizer.client(principal, host)
        return Permits(self.authorizer, self._image(), client, self.audit.of_request(api_key))

    def controller_must_check(self) -> bool:
        """Return True if a controller without an authorizer must refuse what this node forwards.

        With allow.everyone.if.no.acl.found and without any ACL, there is nothing to check. The
        authorizers of a running cluster can therefore be switched on one after the other."""
        return not self.authorizer.settings.allow_everyone or len(self._image().acls) > 0

    def client(self, principal: Principal, host: str) -> Client:
        """Return the client as decisions see it."""
        return self.authorizer.client(principal, host)

    def permits_of(self, caller: Caller, image: MetadataImage) -> Permits:
        """Return the permissions of the caller of a controller's rule, by the image of the rule."""
        assert caller.client is not None
        audit = self.audit.of_request(caller.api_key)
        return Permits(self.authorizer, image, caller.client, audit)

    def guarded(
        self, handlers: Mapping[int, Handler], checks: Mapping[int, Check]
    ) -> dict[int, Handler]:
        """Return the handlers behind their checks. Raise KeyError for an API without a check."""
        return {key: self._guarded(handle, checks[key]) for key, handle in handlers.items()}

    def _guarded(self, handle: Handler, check: Check) -> Handler:
        def steps(context: RequestContext, request: Any) -> IncrementalWork[None]:
            checked = yield from check(self.permits(context), request, context.version)
            rest = self._pass_on(handle, context, checked)
            if rest is not None:
                yield from rest

        def checked_first(context: RequestContext, request: Any) -> IncrementalWork[None] | None:
            return begun(steps(context, request))

        return checked_first

    def _pass_on(
        self, handle: Handler, context: RequestContext, checked: Checked
    ) -> IncrementalWork[None] | None:
        if checked.answer is not None:
            return context.respond_steps(checked.answer)
        if checked.error is not None:
            context.fail(checked.error)
            return None
        if checked.amend is None:
            return handle(context, checked.request)
        return handle(AmendedContext(context, checked.amend), checked.request)
