"""The collection of the metrics of a controller.

Every controller reports the metrics of the cluster from its own replayed metadata, so a scrape of
any controller is sufficient. The image of the active controller includes records that are not
committed yet. The image of a standby may be behind the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.controller.controller import Controller
from quorate.quorum.metadata.image import Broker
from quorate.quorum.node.controller import controller_metric_table as table
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.watch.metrics import lag_ms

FENCED, SHUTTING_DOWN, ACTIVE = 10, 20, 30


def controller_metrics(
    core: NodeCore, rules: Controller, shell: ControllerShell
) -> Iterator[Metric]:
    """Yield the metric families of a controller."""
    yield from of_the_cluster(rules, shell, core.clock.now_ms())
    yield from of_the_node(core, rules, shell)
    yield from of_requests(rules, shell)
    changes = shell.recent_changes.leader_changes
    yield table.LEADER_CHANGES.each(changes.items())
    yield table.UNCLEAN_ELECTIONS.of(rules.index.unclean_elections)
    yield table.ELR_ELECTIONS.of(rules.index.elr_elections)


def registration_state(broker: Broker) -> int:
    """Return Kafka's number of a broker's state."""
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if broker.in_controlled_shutdown else ACTIVE


def of_the_cluster(rules: Controller, shell: ControllerShell, now_ms: int) -> Iterator[Metric]:
    """Yield the state of the cluster, and this node's part in it."""
    image, index = rules.image, rules.index
    fenced = sum(broker.fenced for broker in image.brokers.values())
    yield table.ACTIVE.of(shell.active)
    yield table.ACTIVE_BROKERS.of(len(image.brokers) - fenced)
    yield table.FENCED_BROKERS.of(fenced)
    states = {each.id: registration_state(each) for each in image.brokers.values()}
    yield table.SHUTTING_DOWN_BROKERS.of(list(states.values()).count(SHUTTING_DOWN))
    yield table.BROKER_STATE.each(((str(each),), state) for each, state in states.items())
    silent = rules.sessions.silent_ms(now_ms)
    yield table.SINCE_HEARTBEAT.each(((str(each),), ms) for each, ms in silent.items())
    yield table.TOPICS.of(len(image.topics))
    yield table.PARTITIONS.of(sum(len(topic.partitions) for topic in image.topics.values()))
    yield table.OFFLINE_PARTITIONS.of(len(index.leaderless))
    yield table.IMBALANCED_PARTITIONS.of(len(index.imbalanced))
    yield table.BROKER_UNREPLAYED.each(
        ((str(each.broker_id),), each.metadata_backlog)
        for each in rules.sessions
        if each.metadata_backlog >= 0
    )


def of_the_node(core: NodeCore, rules: Controller, shell: ControllerShell) -> Iterator[Metric]:
    """Yield the state of this controller."""
    image, wall_ms = core.image, core.clock.wall_ms()
    yield table.LAST_APPLIED_OFFSET.of(image.last.offset)
    yield table.LAST_APPLIED_TIMESTAMP.of(image.last_timestamp_ms)
    yield table.LAST_APPLIED_LAG.of(lag_ms(image.last_timestamp_ms, wall_ms))
    yield table.LAST_COMMITTED_OFFSET.of(core.raft.high_watermark - 1)
    yield table.METADATA_ERRORS.of(core.failed)
    dynamic = core.raft.voters_at(core.end_offset).kraft_version > 0
    configured = bool(core.config["controller.quorum.voters"])
    yield table.IGNORED_STATIC_VOTERS.of(dynamic and configured)
    yield table.NEW_CONTROLLERS.of(core.http_endpoints.measures.new_controllers)
    yield table.EXPIRED_SESSIONS.of(rules.expired_sessions)
    yield table.OPERATIONS.of(shell.operations)
    yield table.OPERATIONS_TIMED_OUT.of(shell.turned_away + shell.expired_requests)


def of_requests(rules: Controller, shell: ControllerShell) -> Iterator[Metric]:
    """Yield the requests that wait for this controller, and those that failed or were throttled."""
    backlog, mutations = shell.backlog(), rules.mutation_quotas
    yield table.QUEUED_REQUESTS.of(backlog.queued)
    yield table.OLDEST_QUEUED_REQUEST.of(backlog.oldest_ms / 1000)
    yield table.QUEUE_TIME.of(shell.queue_times)
    yield table.PROCESSING_TIME.of(shell.processing_times)
    yield table.UNCOMMITTED_ANSWERS.of(backlog.uncommitted)
    yield table.FAILED_REQUESTS.of(shell.failed_requests)
    yield table.MUTATIONS_THROTTLED.of(mutations.throttled)
    yield table.MUTATION_THROTTLE_TIME.of(mutations.throttled_ms / 1000)
