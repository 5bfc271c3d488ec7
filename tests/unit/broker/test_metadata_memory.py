"""The memory of a long Metadata response while it is built."""

from __future__ import annotations

from quorate.broker.kafka.cluster.metadata import PARTITION_ENTRIES, MetadataHandler
from quorate.broker.kafka.cluster.suspects import Suspects
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.image import MetadataImage, Partition, Topic
from quorate.quorum.metadata.pace import STEP_ENTRIES
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.rpc.kafka.context import ELEMENT_BYTES
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink

PARTITIONS = 5000
ID = Uuid(bytes(range(16)))


def test_a_long_response_is_counted_in_the_budget() -> None:
    partition = Partition(replicas=(1,), isr=(1,), leader=1)
    partitions = PersistentMap(dict.fromkeys(range(PARTITIONS), partition))
    image = MetadataImage(
        topics=PersistentMap({ID: Topic(id=ID, name="t", partitions=partitions)}),
        topic_ids=PersistentMap({"t": ID}),
    )
    clock = FakeClock()
    handler = MetadataHandler(
        cluster_id="c",
        listener="L",
        image=lambda: image,
        auto_create=None,
        suspects=Suspects(clock, lambda: image, enabled=False),
    )
    resources = NodeResources(clock)
    server = KafkaServer({ApiKey.METADATA: handler.handle}, clock, resources=resources)
    context = RequestContext(server.accept(FakeLink()), ApiKey.METADATA, 12, 1)
    steps = handler.handle(context, MetadataRequest(topics=None))
    assert steps is not None, "it needs several steps"
    for _ in range(5):
        next(steps)
    step_bytes = STEP_ENTRIES // PARTITION_ENTRIES * ELEMENT_BYTES
    assert resources.memory.responses.used_bytes >= 5 * step_bytes
    finished(steps)
