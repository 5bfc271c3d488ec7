"""The tables of an earlier state of the cluster, made of its metadata image. All pure.

They are those of a running cluster, as far as the metadata log tells: no lags, no groups, and no
configs of the files of brokers."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.cli.console.cluster_tables import ClusterTables, tables_of
from quorate.cli.console.views.table import Row, Table
from quorate.cli.status.cluster_status import BrokerLine, Status
from quorate.cli.status.partition_problems import count_states, groups, problems
from quorate.cli.topics.topic_view import MIN_ISR, PartitionView, TopicView
from quorate.config.sensitive import HIDDEN, is_secret
from quorate.quorum.analytics.log.text import RESOURCES, clock
from quorate.quorum.analytics.replay.inference import listed
from quorate.quorum.analytics.replay.moment import Moment
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    Broker,
    MetadataImage,
    Partition,
    Topic,
)
from quorate.quorum.metadata.records import NO_LEADER

CONFIGS = ("kind", "name", "key", "value")
REASSIGNMENTS = ("topic", "partition", "adding", "removing", "isr", "replicas")


def past_tables(moment: Moment) -> ClusterTables:
    """Return the tables of the cluster at a moment. The overview also has `time`, in UTC, and
    `offset`."""
    image = moment.image
    topics = [
        topic_view(image, image.topics[image.topic_ids[name]]) for name in image.topic_names()
    ]
    brokers = tuple(broker_line(image.brokers[each]) for each in image.broker_ids())
    found = problems(topics, frozenset(each.id for each in brokers if each.state == "up"))
    status = Status(
        cluster_id="",
        leader=NO_LEADER if moment.leader is None else moment.leader,
        epoch=moment.epoch,
        high_watermark=moment.offset + 1,
        voter_lags={},
        brokers=brokers,
        topics=len(topics),
        partitions=sum(len(each.partitions) for each in topics),
        problems=tuple(found),
        counts=count_states(found),
        groups=tuple(groups(found, {})),
    )
    tables = tables_of(status, topics)
    leader = "unknown" if moment.leader is None else moment.leader
    voters = listed(moment.voters) if moment.voters else "unknown"
    overview = {
        **tables.overview,
        "quorum": f"Quorum: leader {leader}, epoch {moment.epoch}; voters {voters}",
        "time": clock(moment.timestamp_ms),
        "offset": moment.offset,
    }
    views = {
        "configs": Table(CONFIGS, config_rows(image)),
        "reassignments": Table(REASSIGNMENTS, reassignment_rows(topics)),
    }
    return ClusterTables(overview, tables.tables).with_views(views)


def broker_line(broker: Broker) -> BrokerLine:
    """Return the state of a broker."""
    at = broker.endpoints[0] if broker.endpoints else None
    return BrokerLine(
        id=broker.id,
        address="" if at is None else f"{at.host}:{at.port}",
        state="fenced" if broker.fenced else "up",
        rack=broker.rack,
    )


def topic_view(image: MetadataImage, topic: Topic) -> TopicView:
    """Return a topic. Its min ISR is that of the topic, or of the default of all brokers."""
    configured = image.config(TOPIC_RESOURCE, topic.name).get(MIN_ISR)
    return TopicView(
        name=topic.name,
        topic_id=uuid_to_text(topic.id),
        partitions=tuple(
            partition_view(each, topic.partitions[each]) for each in topic.partition_ids()
        ),
        configs={},
        min_isr=int(configured or image.config(BROKER_RESOURCE, "").get(MIN_ISR) or 1),
    )


def partition_view(number: int, partition: Partition) -> PartitionView:
    """Return a partition."""
    return PartitionView(
        partition=number,
        leader=None if partition.leader == NO_LEADER else partition.leader,
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        adding=partition.adding,
        removing=partition.removing,
    )


def config_rows(image: MetadataImage) -> list[Row]:
    """Return a row for each config that the metadata log sets, without the secrets."""
    return [
        (
            RESOURCES.get(kind, str(kind)),
            name or "(default)",
            key,
            HIDDEN if is_secret(kind, key) else value,
        )
        for kind, name in sorted(image.configs)
        for key, value in sorted(image.config(kind, name).items())
    ]


def reassignment_rows(topics: Sequence[TopicView]) -> list[Row]:
    """Return a row for each partition whose replicas were being moved."""
    return [
        (topic.name, each.partition, each.adding, each.removing, each.isr, each.replicas)
        for topic in topics
        for each in topic.partitions
        if each.adding or each.removing
    ]
