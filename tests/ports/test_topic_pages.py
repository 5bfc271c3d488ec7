"""The pages of DescribeTopicPartitions, and the errors of names that no topic has.

The errors are those of Apache Kafka 4.1.1 (DescribeTopicPartitionsRequestHandler, KafkaApis)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from tests.ports.node import BROKER_PORT, PortCluster, running
from tests.ports.requests import READ, WRITTEN, World
from tests.ports.secured import ALICE, TOPIC, Secured, secured_cluster

ILLEGAL, MISSING, INTERNAL = "not legal", "missing", "__transaction_state"


def page(*names: str, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    """Return the request for a page."""
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=each) for each in names),
        response_partition_limit=100,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def errors(answer: Any) -> list[tuple[str, int]]:
    """Return the name and the error of each topic in an answer."""
    return [(each.name, each.error_code) for each in answer.topics]


def asked(node: PortCluster, request: DescribeTopicPartitionsRequest) -> list[tuple[str, int]]:
    return errors(node.ask(node.connect(BROKER_PORT), request, 0))


def test_a_name_that_no_topic_may_have_is_told(prepared: tuple[PortCluster, World]) -> None:
    answer: Any = prepared[0].ask(
        prepared[0].connect(BROKER_PORT), page(ILLEGAL, MISSING, INTERNAL), 0
    )
    assert [(each.name, each.error_code, each.is_internal) for each in answer.topics] == [
        (INTERNAL, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (MISSING, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ILLEGAL, ErrorCode.INVALID_TOPIC_EXCEPTION, False),
    ]


@pytest.mark.parametrize("creates", ["true", "false"])
def test_metadata_of_a_name_that_no_topic_may_have(creates: str) -> None:
    """A producer gives up immediately. After UNKNOWN_TOPIC_OR_PARTITION it asks again for
    max.block.ms, which is a minute."""
    with running(auto_create_topics_enable=creates) as node:
        raw = node.connect(BROKER_PORT)
        for allowed in (True, False):
            request = MetadataRequest(
                topics=tuple(MetadataRequestTopic(name=each) for each in (ILLEGAL, "a" * 250)),
                allow_auto_topic_creation=allowed,
            )
            answer: Any = node.ask(raw, request, 12)
            assert {code for _, code in errors(answer)} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name=INTERNAL),), allow_auto_topic_creation=False
        )
        (topic,) = node.ask(raw, request, 12).topics  # type: ignore[attr-defined]
        assert (topic.error_code, topic.is_internal) == (3, True)


def test_an_invalid_cursor_is_an_error_of_each_topic(
    prepared: tuple[PortCluster, World],
) -> None:
    """The broker closed the connection because of a negative partition, and ignored a topic that
    the request does not name."""
    node, _ = prepared
    refused = [(READ, ErrorCode.INVALID_REQUEST)]
    assert asked(node, page(READ, cursor=(READ, -1))) == refused
    assert asked(node, page(READ, cursor=("another", 0))) == refused
    assert asked(node, page(cursor=(READ, -1))) == []


def test_a_page_begins_at_its_cursor(prepared: tuple[PortCluster, World]) -> None:
    node, _ = prepared
    assert asked(node, page(READ, WRITTEN, cursor=(WRITTEN, 0))) == [(WRITTEN, 0)]
    assert (WRITTEN, 0) in asked(node, page(cursor=("s", 0))), "any topic, if all are described"
    # A topic that was deleted after the last page: its description would lack partitions.
    missing = asked(node, page(MISSING, READ, cursor=(MISSING, 5)))
    assert missing == [(MISSING, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (READ, 0)]


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with secured_cluster() as found:
        found.allow((TOPIC, Operation.DESCRIBE))
        yield found


def test_a_cursor_shows_no_forbidden_topic(secured: Secured) -> None:
    def said(request: DescribeTopicPartitionsRequest) -> list[tuple[str, int]]:
        return errors(secured.ask(ALICE, request, 0))

    everything = [name for name, _ in said(page())]
    assert {READ, WRITTEN} <= set(everything)
    assert said(page(cursor=(MISSING, 0))) == [(each, 0) for each in everything if each > MISSING]
    assert said(page(READ, cursor=("another", 0))) == [(READ, ErrorCode.INVALID_REQUEST)]
    secured.forget()
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert said(page(READ, WRITTEN, cursor=(WRITTEN, 0))) == [(WRITTEN, denied)]
    assert said(page(READ, cursor=("another", 0))) == [(READ, ErrorCode.INVALID_REQUEST)]
    assert said(page(cursor=(READ, 0))) == []
