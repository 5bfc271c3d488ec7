"""A broker with an authorizer and a controller without one, and answers of the broker before the
decision of the controller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.wire import Message
from tests.ports.node import BROKER_ID
from tests.ports.requests import BUILDERS, create
from tests.ports.secured import ALICE, CLUSTER, NOBODY, ROOT, Secured, secured_cluster

LOST_S = 10.0
TOO_MANY: dict[str, Any] = {"name": "num.replica.fetchers", "value": "9"}
"""A change that the settings of the broker do not permit: at most twice as many."""
BROKER: dict[str, Any] = {"resource_type": 4, "resource_name": str(BROKER_ID)}


def changes() -> Iterator[tuple[Message, int]]:
    one = AlterConfigsResource(**BROKER, configs=(AlterableConfig(**TOO_MANY),))
    yield AlterConfigsRequest(resources=(one,), validate_only=False), 2
    changed = IncrementalAlterableConfig(**TOO_MANY, config_operation=0)
    two = IncrementalAlterConfigsResource(**BROKER, configs=(changed,))
    yield IncrementalAlterConfigsRequest(resources=(two,), validate_only=False), 1


def test_a_broker_compares_its_settings_only_for_clients_that_may_change_them() -> None:
    with secured_cluster() as secured:
        for request, version in changes():
            for principal, error in (
                (NOBODY, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
                (ALICE, ErrorCode.INVALID_REQUEST),
                (ROOT, ErrorCode.INVALID_REQUEST),
            ):
                secured.allow((CLUSTER, Operation.ALTER_CONFIGS))
                answer: Any = secured.ask(principal, request, version)
                assert [each.error_code for each in answer.responses] == [error], principal
                secured.forget()


def test_the_reason_of_a_lost_quorum_is_not_for_everybody() -> None:
    with secured_cluster() as secured:
        secured.node.cluster.kill(secured.node.cluster.controllers[0])
        for principal, error in (
            (ROOT, ErrorCode.NOT_CONTROLLER),
            (NOBODY, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ):
            request = BUILDERS[ApiKey.DESCRIBE_QUORUM](secured.world, 2)
            secured.node.run(LOST_S)
            answer: Any = secured.ask(principal, request, 2)
            assert answer.error_code == error
            assert ("voters" in (answer.error_message or "")) == (principal == ROOT), answer


@contextmanager
def controller_without_authorizer(**settings: Any) -> Iterator[Secured]:
    """Run a cluster whose controller was started without the key of the broker."""
    with secured_cluster(**settings) as secured:
        process = secured.node.cluster.controllers[0].process
        assert process is not None and process.controller is not None
        port = process.controller.port
        port._authorizer = port.envelopes._authorizer = None
        yield secured


@pytest.mark.parametrize("principal", [ROOT, NOBODY])
def test_a_controller_without_an_authorizer_refuses_what_must_be_checked(principal: Any) -> None:
    """It would carry out the request of any client."""
    with controller_without_authorizer() as secured:
        answer: Any = secured.ask(principal, create("unchecked"), 5)
        (topic,) = answer.topics
        assert topic.error_code == ErrorCode.SECURITY_DISABLED
        assert "authorizer.class.name" in topic.error_message
        assert "unchecked" not in secured.node.cluster.newest_image().topic_ids


def test_authorizers_can_be_switched_on_one_after_the_other() -> None:
    """Until the first ACL exists, allow.everyone.if.no.acl.found leaves nothing to check."""
    with controller_without_authorizer(allow_everyone_if_no_acl_found="true") as secured:
        process: Any = secured.node.cluster.controllers[0].process
        answer: Any = secured.ask(NOBODY, create("open"), 5)
        assert [each.error_code for each in answer.topics] == [ErrorCode.NONE]
        broker: Any = secured.node.cluster.brokers[0].process
        process.controller.port._authorizer = broker.broker.services.authorizer
        secured.allow((CLUSTER, Operation.DESCRIBE))
        process.controller.port._authorizer = None
        answer = secured.ask(ROOT, create("closed"), 5)
        assert [each.error_code for each in answer.topics] == [ErrorCode.SECURITY_DISABLED]
