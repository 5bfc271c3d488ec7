"""The errors of partitions in Metadata responses."""

from __future__ import annotations

from typing import cast

import pytest

from quorate.broker.kafka.cluster.metadata import MetadataHandler
from quorate.broker.kafka.cluster.suspects import Suspects
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.metadata.image import Broker, MetadataImage, Partition, Topic
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.rpc.kafka.server import RequestContext
from tests.unit.rpc.kafka.fakes import FakeClock

ID = Uuid(bytes(range(16)))


class Asked:
    """A double of a request's context."""

    asked_metadata = False

    def __init__(self, version: int) -> None:
        self.version = version
        self.connection = self
        self.answers: list[MetadataResponse] = []

    def count_elements(self, elements: int) -> None:
        """Count nothing."""

    def respond_steps(self, response: MetadataResponse) -> IncrementalWork[None]:
        self.answers.append(response)
        yield from ()


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
)
def test_a_leader_without_the_listener(version: int, error: ErrorCode) -> None:
    """Clients of older versions do not know LISTENER_NOT_FOUND, as in Kafka."""
    partition = Partition(replicas=(1,), isr=(1,), leader=1)
    topic = Topic(id=ID, name="t", partitions=PersistentMap({0: partition}))
    broker = Broker(id=1, epoch=1, incarnation_id=ID, endpoints=(), fenced=False)
    image = MetadataImage(
        brokers=PersistentMap({1: broker}),
        topics=PersistentMap({ID: topic}),
        topic_ids=PersistentMap({"t": ID}),
    )
    handler = MetadataHandler(
        cluster_id="c",
        listener="L",
        image=lambda: image,
        auto_create=None,
        suspects=Suspects(FakeClock(), lambda: image, enabled=False),
    )
    asked = Asked(version)
    steps = handler.handle(cast(RequestContext, asked), MetadataRequest(topics=None))
    if steps is not None:
        finished(steps)
    (found,) = asked.answers[0].topics[0].partitions
    assert (found.error_code, found.leader_id) == (error, -1)
