"""IncrementalAlterConfigs and AlterConfigs on a broker: compares changes of the broker's own
configs with its settings, and forwards everything else to the controller.

Only the broker knows the settings of its file. As in Kafka, the broker that a client asks therefore
refuses a change that its present settings do not permit (`config/dynamic_keys.py` `check_change`).
That concerns its own configs and those of all brokers. The controller checks the rest: keys, types
and ranges, and the configs of other brokers.
It tries the keys of TLS before it forwards them (`tls_changes.py`).

A refusal tells something about the broker's settings. A broker with an authorizer therefore
compares only for clients that may change them. The controller refuses the requests of all others.

A refused resource does not fail the others of its request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from quorate.broker.kafka.admin.tls_changes import TlsChange, TryOut, tls_change
from quorate.broker.kafka.shared.forwarding import MAX_ENVELOPE_BYTES, Forwarding
from quorate.config.dynamic_keys import COMPARED, check_change, settings_with
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import BROKER_RESOURCE, MetadataImage
from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode_steps, encode_steps
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.seams import Buffer

SET, DELETE = 0, 1
"""Kafka's codes for operations of IncrementalAlterConfigs."""
INVALID = "Invalid value for a broker config: "
Resource: TypeAlias = AlterConfigsResource | IncrementalAlterConfigsResource
RESPONSES: Mapping[type, tuple[Callable[..., Message], Callable[..., object]]] = {
    AlterConfigsRequest: (AlterConfigsResponse, AlterConfigsResourceResponse),
    IncrementalAlterConfigsRequest: (
        IncrementalAlterConfigsResponse,
        IncrementalAlterConfigsResourceResponse,
    ),
}
"""The classes of the response, and of its answer for one resource, by request class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsHandler:
    """The handler of both APIs on one broker. `image` returns its committed image. `try_tls` checks
    changed keys of TLS. `permits` returns the permissions of the client of a request. It is None
    without an authorizer."""

    node: NodeConfig
    image: Callable[[], MetadataImage]
    forwarding: Forwarding
    try_tls: TryOut
    permits: Callable[[RequestContext], Permits] | None = None

    def handle(self, context: RequestContext, body: memoryview) -> IncrementalWork[None] | None:
        """Forward the request without the resources that this broker refuses. Return the rest of
        the work as steps if it is long.

        A refused resource is answered with INVALID_REQUEST. Raise DecodeError if the request is
        malformed.

        The type of a resource is one byte. A body without the byte of a broker's type names no
        broker, so it is forwarded without being decoded: most requests change topics."""
        too_large = len(body) > MAX_ENVELOPE_BYTES
        if too_large or bytes(body).find(BROKER_RESOURCE) < 0 or not self._may_compare(context):
            self.forwarding.handle(context, body)
            return None
        return begun(self._steps(context, body))

    def _may_compare(self, context: RequestContext) -> bool:
        """Return True if the client may change configs of brokers."""
        if self.permits is None:
            return True
        return self.permits(context).cluster(Operation.ALTER_CONFIGS, audited=False)

    def _steps(self, context: RequestContext, body: memoryview) -> IncrementalWork[None]:
        request: Any
        request, _ = yield from decode_steps(APIS[context.api_key].request, context.version, body)
        refused: dict[int, str] = {}
        changes = yield from self._checked(request.resources, refused)
        for number, change in changes:

            def tried(reason: str | None, number: int = number) -> None:
                if reason is not None:
                    refused[number] = INVALID + reason
                context.run(self._forward(context, body, request, refused))

            try:
                self.try_tls(change.settings, change.names, tried)
                return  # only one resource is this broker
            except ConfigError as error:
                refused[number] = INVALID + str(error)
        yield from self._forward(context, body, request, refused)

    def _checked(
        self, resources: Sequence[Resource], refused: dict[int, str]
    ) -> IncrementalWork[list[tuple[int, TlsChange]]]:
        """Return, in steps, the number and the change of the resource that changes the TLS of this
        broker, if there is one. Add the number of each resource that this broker refuses to
        `refused`. Leave resources that are named twice to the controller, which refuses them."""
        changes = []
        times_named = Counter((each.resource_type, each.resource_name) for each in resources)
        for number, resource in enumerate(resources):
            kind, name = resource.resource_type, resource.resource_name
            if kind == BROKER_RESOURCE and times_named[kind, name] == 1:
                try:
                    change = self._check(resource)
                except ConfigError as error:
                    refused[number] = INVALID + str(error)
                else:
                    changes += [] if change is None else [(number, change)]
                yield
        return changes

    def _forward(
        self, context: RequestContext, body: memoryview, request: Any, refused: Mapping[int, str]
    ) -> IncrementalWork[None]:
        """Forward the request without the resources whose numbers are in `refused`."""
        if not refused:
            self.forwarding.handle(context, body)
            return
        resources: Sequence[Resource] = request.resources
        left = tuple(each for number, each in enumerate(resources) if number not in refused)
        if not left:
            yield from context.respond_steps(merged(request, refused, ()))
            return
        rest = yield from encode_steps(replace(request, resources=left), context.version)

        def respond(answer: Buffer) -> None:
            context.run(respond_merged(context, request, refused, answer))

        self.forwarding.handle(context, memoryview(rest), respond)

    def _check(self, resource: Resource) -> TlsChange | None:
        """Raise ConfigError if this broker refuses a change of a broker's configs. Return the part
        of the change that it must try, or None."""
        own = str(self.node.node_id)
        image, name = self.image(), resource.resource_name
        before = image.config(BROKER_RESOURCE, name)
        after = texts_after(resource, before)
        if name in ("", own):
            stored = {each: compared(image.config(BROKER_RESOURCE, each)) for each in ("", own)}
            wanted = {**stored, name: compared(after)}
            if stored != wanted:
                settings, _ = settings_with(self.node, stored[""], stored[own])
                changed, _ = settings_with(self.node, wanted[""], wanted[own])
                check_change(settings, changed)
        named = [each.name for each in resource.configs]
        return tls_change(self.node, name, named, before, after)


def compared(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the configs that `check_change` compares."""
    return {name: texts[name] for name in COMPARED if name in texts}


def texts_after(resource: Resource, stored: Mapping[str, str]) -> dict[str, str]:
    """Return the configs of a broker after a change of `stored`. No list can be checked here, so
    other operations than SET and DELETE are left to the controller."""
    if isinstance(resource, AlterConfigsResource):
        return {each.name: each.value or "" for each in resource.configs}
    texts = dict(stored)
    for each in resource.configs:
        if each.config_operation == DELETE:
            texts.pop(each.name, None)
        elif each.config_operation == SET and each.value is not None:
            texts[each.name] = each.value
    return texts


def respond_merged(
    context: RequestContext, request: Any, refused: Mapping[int, str], answer: Buffer
) -> IncrementalWork[None]:
    """Send the controller's answer together with the refusals, in steps."""
    response: Any
    response, _ = yield from decode_steps(APIS[context.api_key].response, context.version, answer)
    yield from context.respond_steps(merged(request, refused, response.responses))


def merged(request: Any, refused: Mapping[int, str], answers: Sequence[Any]) -> Message:
    """Return the response to `request`: an error for each resource whose number is in `refused`,
    and the controller's answers for the others, in the order of the request."""
    response, of_resource = RESPONSES[type(request)]
    others = iter(answers)
    return response(
        responses=tuple(
            of_resource(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=refused[number],
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            if number in refused
            else next(others)
            for number, each in enumerate(request.resources)
        )
    )
