"""All metrics of a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from prometheus_client.metrics_core import Metric

from quorate.broker.controller.alter_partition_sender import AlterPartitionSender
from quorate.broker.controller.assignment_sender import AssignmentSender
from quorate.broker.controller.lifecycle import BrokerLifecycle, State
from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.kafka.broker_quotas import BrokerQuotas
from quorate.broker.kafka.services import Services
from quorate.broker.metrics import replica_table, service_table
from quorate.broker.metrics.cleaner import of_cleaner
from quorate.broker.metrics.groups import of_groups
from quorate.broker.metrics.logs import of_directories, of_flushes, of_recompressions
from quorate.broker.metrics.replicas import (
    Replica,
    of_isr_changes,
    of_moves,
    of_partitions,
    of_replicas,
)
from quorate.broker.metrics.requests import of_delayed, of_fetch_sessions, of_quotas, of_requests
from quorate.broker.metrics.traffic import of_fetchers, of_throttles, of_traffic
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.watch.authorizer import authorizer_metrics
from quorate.quorum.watch.metrics import lag_ms
from quorate.quorum.watch.sasl import sasl_metrics, token_metrics

if TYPE_CHECKING:
    from quorate.broker.kafka.token_listener import TokenListener

BROKER_STATES = {  # as in Kafka
    State.NOT_RUNNING: 0,
    State.STARTING: 1,
    State.RECOVERY: 2,
    State.RUNNING: 3,
    State.PENDING_CONTROLLED_SHUTDOWN: 6,
    State.SHUTTING_DOWN: 7,
}


class MetricSources(Protocol):
    """The parts of a running broker whose counters a scrape reads."""

    core: NodeCore
    replicas: ReplicaManager
    isr_sender: AlterPartitionSender
    assignments: AssignmentSender
    groups: GroupCoordinator
    connections: ConnectionQuotas
    quotas: BrokerQuotas
    client_ports: list[KafkaServer]
    services: Services
    token_listeners: dict[str, TokenListener]
    lifecycle: BrokerLifecycle | None


def broker_metrics(node: MetricSources) -> Iterator[Metric]:
    """Yield all metrics of a broker."""
    replicas, bound = node.replicas, node.core.config["metrics.per.partition"]
    yield from of_hosted(replicas, bound)
    yield from of_isr_changes(node.isr_sender)
    yield from of_moves(replicas.moves)
    yield from of_requests(node.client_ports)
    yield service_table.CONNECTIONS.of(len(node.connections))
    yield from of_delayed(replicas.consumer_fetches.delayed_operations)
    yield from of_fetch_sessions(replicas.session_cache)
    yield from of_fetchers(replicas, bound)
    yield from of_throttles(replicas)
    yield from of_metadata(node)
    yield from of_cleaner(replicas.cleaner)
    yield from of_directories(replicas.logs, node.assignments.pending)
    yield from of_flushes(replicas.logs)
    yield service_table.APPEND_TIME.of(replicas.registry.traffic.append_times)
    yield from of_recompressions(replicas.recompressions)
    yield from of_quotas(node.quotas, node.core.clock.now_ms(), bound)
    if node.services.gates:
        yield from sasl_metrics(node.services.gates)
    if node.token_listeners:
        yield from token_metrics([each.refresher for each in node.token_listeners.values()])
    yield from authorizer_metrics(node.services.authorizer, "broker", replicas.registry.image)
    yield from of_groups(node.groups, replicas.registry, bound)


def of_hosted(manager: ReplicaManager, bound: int) -> Iterator[Metric]:
    """Yield the metrics of the hosted replicas and their topics, of at most `bound` partitions and
    `bound` topics. The first ones by name are chosen, so that the choice is stable."""
    registry = manager.registry
    image = registry.image
    replicas = [Replica.of(each, image.partition(*each.key)) for each in registry]
    yield from of_replicas(replicas, manager.unopened)
    replicas.sort(key=lambda each: (each.hosted.topic, each.hosted.key[1]))
    shown = replicas[:bound]
    yield from of_partitions(shown, len(replicas) - len(shown))
    yield from of_traffic(registry.traffic, {each.hosted.topic for each in replicas}, bound)


def of_metadata(node: MetricSources) -> Iterator[Metric]:
    """Yield the broker's state and the progress of its metadata replay."""
    core, image = node.core, node.core.image
    lag = lag_ms(image.last_timestamp_ms, core.seams.clock.wall_ms())
    state = State.NOT_RUNNING if node.lifecycle is None else node.lifecycle.state
    yield replica_table.BROKER_STATE.of(BROKER_STATES[state])
    yield replica_table.LAST_APPLIED_OFFSET.of(image.last.offset)
    yield replica_table.LAST_APPLIED_TIMESTAMP.of(image.last_timestamp_ms)
    yield replica_table.LAST_APPLIED_LAG.of(lag / 1000 if lag >= 0 else lag)
    yield replica_table.LOAD_ERRORS.of(core.failed)
    yield replica_table.APPLY_ERRORS.of(core.failed)
    yield replica_table.ACTING_LAG.of(core.http_endpoints.life_cycle.acting_times)
    yield replica_table.UNACTED_RECORDS.of(
        max(0, core.replayed_offset - node.replicas.acted_offset)
    )
