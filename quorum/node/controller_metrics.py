"""The metrics of a controller.

Every controller reports the metrics of the cluster from its own replayed metadata, so a scrape of
any controller is sufficient. The image of the active controller includes records that are not
committed yet. The image of a standby may be behind the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.controller.controller import Controller
from quorate.quorum.node.controller_shell import ControllerShell
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.watch.families import counter, gauge, gauges
from quorate.quorum.watch.metrics import lag_ms
from quorate.quorum.watch.quotas import throttles

PREFIX = "kafka_controller_kafkacontroller_"


def controller_metrics(
    core: NodeCore, rules: Controller, shell: ControllerShell
) -> Iterator[Metric]:
    """Yield the metric families of a controller."""
    for name, help_, value in (*of_the_cluster(rules, shell), *of_the_node(core, rules, shell)):
        yield gauge(PREFIX + name, help_, value)
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Leaders elected that may lack committed records.",
        rules.index.unclean_elections,
    )
    yield counter(
        "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total",
        "Leaders elected from the eligible leader replicas, without data loss.",
        rules.index.elr_elections,
    )
    yield counter(
        "quorate_controller_failed_requests_total",
        "Requests refused because a rule or its records failed in an unexpected way.",
        shell.failed_requests,
    )
    backlog = shell.backlog()
    help_ = "Requests that wait for the decision of the active controller."
    yield gauge("quorate_controller_queued_requests", help_, backlog.queued)
    help_ = "Age of the oldest request that waits for the decision, ms."
    yield gauge("quorate_controller_oldest_queued_request_ms", help_, backlog.oldest_ms)
    help_ = "Answers that wait for a commit."
    yield gauge("quorate_controller_uncommitted_answers", help_, backlog.uncommitted)
    yield gauges(
        "quorate_controller_broker_unreplayed_records",
        "Metadata records that the broker had not replayed at its last heartbeat.",
        ("broker",),
        (
            ((str(each.broker_id),), each.metadata_backlog)
            for each in rules.sessions
            if each.metadata_backlog >= 0
        ),
    )
    mutations = rules.mutation_quotas
    yield from throttles(
        [("controller_mutation_rate", mutations.throttled, mutations.throttled_ms)]
    )


def of_the_cluster(rules: Controller, shell: ControllerShell) -> Iterator[tuple[str, str, float]]:
    """Yield (name, help, value) for the state of the cluster, and for this node's part in it
    (activecontrollercount)."""
    image, index = rules.image, rules.index
    fenced = sum(broker.fenced for broker in image.brokers.values())
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    yield "activecontrollercount", "1 on the active controller, else 0.", shell.active
    yield (
        "activebrokercount",
        "Registered brokers that are not fenced.",
        len(image.brokers) - fenced,
    )
    yield "fencedbrokercount", "Registered brokers that are fenced.", fenced
    yield "globaltopiccount", "Topics.", len(image.topics)
    yield "globalpartitioncount", "Partitions.", partitions
    yield "offlinepartitionscount", "Partitions without a leader.", len(index.leaderless)
    yield (
        "preferredreplicaimbalancecount",
        "Partitions whose leader is not their preferred one.",
        len(index.imbalanced),
    )


def of_the_node(
    core: NodeCore, rules: Controller, shell: ControllerShell
) -> Iterator[tuple[str, str, float]]:
    """Yield (name, help, value) for the state of this controller."""
    image = core.image
    wall_ms = core.clock.wall_ms()
    yield "lastappliedrecordoffset", "The last record replayed.", image.last.offset
    yield "lastappliedrecordtimestamp", "When it was written.", image.last_timestamp_ms
    yield "lastappliedrecordlagms", "Its age.", lag_ms(image.last_timestamp_ms, wall_ms)
    yield (
        "lastcommittedrecordoffset",
        "The last record known to be committed.",
        core.raft.high_watermark - 1,
    )
    yield "metadataerrorcount", "Errors in the metadata; one stops the node.", core.failed
    yield (
        "newactivecontrollerscount",
        "Active controllers that this node has seen take office.",
        core.http_endpoints.measures.new_controllers,
    )
    yield (
        "timedoutbrokerheartbeatcount",
        "Broker sessions that expired while this node was active.",
        rules.expired_sessions,
    )
    yield "eventqueueoperationsstartedcount", "Requests and events ruled on.", shell.operations
    yield (
        "eventqueueoperationstimedoutcount",
        "Requests that waited longer than their timeout, or found the queue full.",
        shell.turned_away + shell.expired_requests,
    )
