"""The metrics of a broker: replicas, traffic, requests and fetchers, with Kafka's names where they
exist.

The module is imported at the first scrape. A metric of partitions has one sample for each partition
that is hosted here. The sample with `topic=""` is the sum for the broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from prometheus_client.core import SummaryMetricFamily
from prometheus_client.metrics_core import Metric

from quorate.broker.cleaner_metrics import of_cleaner
from quorate.broker.controller.alter_partition_sender import AlterPartitionSender
from quorate.broker.controller.assignment_sender import AssignmentSender
from quorate.broker.controller.lifecycle import BrokerLifecycle, State
from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.kafka.broker_quotas import BrokerQuotas
from quorate.broker.kafka.services import Services
from quorate.broker.log_metrics import of_directories, of_flushes, of_recompressions
from quorate.broker.replication.hosted_partition import HostedPartition
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.broker.replication.traffic import TopicTraffic
from quorate.quorum.metadata.image import Partition
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.quotas.connection_rates import CONNECTION_CREATION_RATE
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.watch.authorizer import authorizer_metrics
from quorate.quorum.watch.families import counter, counters, gauge, gauges
from quorate.quorum.watch.metrics import lag_ms
from quorate.quorum.watch.quotas import clients, throttles
from quorate.quorum.watch.sasl import sasl_metrics

REPLICAS = "kafka_server_replicamanager_"
PARTITION = ("topic", "partition")
BROKER_STATES = {  # as in Kafka
    State.NOT_RUNNING: 0,
    State.STARTING: 1,
    State.RECOVERY: 2,
    State.RUNNING: 3,
    State.PENDING_CONTROLLED_SHUTDOWN: 6,
    State.SHUTTING_DOWN: 7,
}
TRAFFIC: tuple[tuple[str, str, Callable[[TopicTraffic], int]], ...] = (
    ("messagesin", "Records appended by producers.", lambda each: each.messages_in),
    ("bytesin", "Bytes appended by producers.", lambda each: each.bytes_in),
    ("bytesout", "Bytes read by consumers.", lambda each: each.bytes_out),
    ("totalproducerequests", "Requested appends.", lambda each: each.produce_requests),
    ("totalfetchrequests", "Requested reads.", lambda each: each.fetch_requests),
    ("failedproducerequests", "Rejected appends.", lambda each: each.failed_produce_requests),
    ("failedfetchrequests", "Rejected reads.", lambda each: each.failed_fetch_requests),
    ("replicationbytesin", "Bytes fetched from leaders.", lambda each: each.replication_bytes_in),
    ("replicationbytesout", "Bytes read by followers.", lambda each: each.replication_bytes_out),
    (
        "reassignmentbytesin",
        "Bytes fetched by replicas that a reassignment adds.",
        lambda each: each.reassignment_bytes_in,
    ),
    (
        "nokeycompactedtopicrecords",
        "Records without a key that compacted topics refused.",
        lambda each: each.keyless_records,
    ),
)


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
    lifecycle: BrokerLifecycle | None


@dataclass(frozen=True, slots=True)
class Replica:
    """One hosted partition in the metrics. The numbers that only its leader knows are 0 on a
    follower: `replicas`, without those that a reassignment adds, `in_sync`, the size of the
    committed ISR, and `min_isr`, which is at most the number of all replicas."""

    hosted: HostedPartition
    leads: bool
    replicas: int
    in_sync: int
    min_isr: int
    reassigning: bool

    @classmethod
    def of(cls, hosted: HostedPartition, value: Partition | None) -> Replica:
        """Return the metrics of a hosted partition. `value` is its state in the image, or None."""
        leadership = hosted.partition.leadership
        reassigning = value is not None and value.reassigning
        if leadership is None:
            return cls(hosted, False, 0, 0, 0, reassigning)
        adding = 0 if value is None else len(value.adding)
        count, in_sync = len(leadership.replicas) + 1, len(leadership.isr.committed)
        return cls(hosted, True, count - adding, in_sync, leadership.effective_min_isr, reassigning)

    @property
    def labels(self) -> tuple[str, str]:
        """Return the topic and the partition number."""
        return self.hosted.topic, str(self.hosted.key[1])

    @property
    def under_replicated(self) -> bool:
        """Return True if this broker leads the partition and the ISR has fewer members than
        `replicas`."""
        return self.leads and self.in_sync < self.replicas

    @property
    def under_min_isr(self) -> bool:
        """Return True if this broker leads the partition and the ISR has fewer members than
        `min_isr`."""
        return self.leads and self.in_sync < self.min_isr

    @property
    def at_min_isr(self) -> bool:
        """Return True if this broker leads the partition and the ISR has exactly `min_isr`
        members."""
        return self.leads and self.in_sync == self.min_isr


def broker_metrics(node: MetricSources) -> Iterator[Metric]:
    """Yield all metrics of a broker."""
    registry = node.replicas.registry
    image = registry.image
    replicas = [Replica.of(each, image.partition(*each.key)) for each in registry]
    yield from of_replicas(node, replicas)
    yield from of_partitions(replicas)
    yield from of_traffic(node, {each.hosted.topic for each in replicas})
    yield from of_requests(node)
    yield from of_shares(node)
    yield from of_fetchers(node)
    yield from of_throttles(node)
    yield from of_metadata(node)
    yield from of_cleaner(node.replicas.cleaner)
    yield from of_directories(node.replicas.logs, node.assignments.pending)
    yield from of_flushes(node.replicas.logs)
    yield from of_recompressions(node.replicas.recompressions)
    yield from of_quotas(node.quotas, node.core.clock.now_ms())
    if node.services.gates:
        yield from sasl_metrics(node.services.gates)
    yield from authorizer_metrics(node.services.authorizer, "broker", image)
    yield counter(
        "quorate_groups_rebuilt_shards_total",
        "Partitions of __consumer_offsets whose groups were loaded again after a failure.",
        node.groups.rebuilt_shards,
    )


def of_replicas(node: MetricSources, replicas: list[Replica]) -> Iterator[Metric]:
    """Yield the counts of replicas and ISR changes."""
    values = (
        ("partitioncount", "Replicas here.", len(replicas)),
        ("leadercount", "Replicas here that lead.", sum(each.leads for each in replicas)),
        (
            "underreplicatedpartitions",
            "Partitions led here that have fewer in-sync replicas than replicas.",
            sum(each.under_replicated for each in replicas),
        ),
        (
            "underminisrpartitioncount",
            "Partitions led here below min.insync.replicas.",
            sum(each.under_min_isr for each in replicas),
        ),
        (
            "atminisrpartitioncount",
            "Partitions led here that have just min.insync.replicas.",
            sum(each.at_min_isr for each in replicas),
        ),
        (
            "offlinereplicacount",
            "Replicas that belong here and are not open yet.",
            node.replicas.unopened,
        ),
        (
            "reassigningpartitions",
            "Partitions led here that are being reassigned.",
            sum(each.leads and each.reassigning for each in replicas),
        ),
    )
    for name, help_, value in values:
        yield gauge(REPLICAS + name, help_, value)
    sender = node.isr_sender
    yield counter(f"{REPLICAS}isrshrinks_total", "Accepted ISR shrinks.", sender.shrinks)
    yield counter(f"{REPLICAS}isrexpands_total", "Accepted ISR expansions.", sender.expands)
    yield counter(f"{REPLICAS}failedisrupdates_total", "Rejected ISR changes.", sender.failures)
    help_ = "ISR changes that this broker proposed and that have no result yet."
    yield gauge("quorate_isr_proposals_waiting", help_, sender.pending)
    help_ = "Those of them that the request in flight carries."
    yield gauge("quorate_isr_proposals_in_flight", help_, sender.in_flight)
    help_ = "Age of the oldest of them, ms."
    yield gauge("quorate_isr_proposals_oldest_ms", help_, sender.oldest_ms)
    help_ = "AlterPartition requests that failed as a whole and were sent again."
    yield counter("quorate_isr_requests_repeated_total", help_, sender.repeated)


def of_partitions(replicas: list[Replica]) -> Iterator[Metric]:
    """Yield the metrics of each hosted partition."""
    partition: tuple[tuple[str, str, Callable[[Replica], float]], ...] = (
        ("cluster_partition_replicascount", "Replicas, on the leader.", lambda r: r.replicas),
        ("cluster_partition_insyncreplicascount", "In-sync replicas.", lambda r: r.in_sync),
        (
            "cluster_partition_underreplicated",
            "1 if so, on the leader.",
            lambda r: r.under_replicated,
        ),
        ("cluster_partition_underminisr", "1 if so, on the leader.", lambda r: r.under_min_isr),
        ("cluster_partition_atminisr", "1 if so, on the leader.", lambda r: r.at_min_isr),
        ("log_log_size", "Bytes on disk.", lambda r: r.hosted.log.size_bytes),
        ("log_log_logendoffset", "Log end offset.", lambda r: r.hosted.log.end_offset),
        ("log_log_logstartoffset", "Log start offset.", lambda r: r.hosted.log.start_offset),
    )
    for name, help_, value in partition:
        samples = ((each.labels, value(each)) for each in replicas)
        yield gauges(f"kafka_{name}", help_, PARTITION, samples)


def of_traffic(node: MetricSources, topics: set[str]) -> Iterator[Metric]:
    """Yield the traffic of the hosted `topics`, and the sum for the broker. The counters of other
    topics are merged into the sum (`Traffic.by_topic`)."""
    traffic = node.replicas.registry.traffic
    by_topic = traffic.by_topic(topics)
    total = traffic.total()
    for name, help_, count in TRAFFIC:
        samples = [((topic,), count(each)) for topic, each in sorted(by_topic.items())]
        full = f"kafka_server_brokertopicmetrics_{name}_total"
        yield counters(full, help_, ("topic",), [(("",), count(total)), *samples])


def of_requests(node: MetricSources) -> Iterator[Metric]:
    """Yield the counts and times of client requests, and the number of client connections."""
    requests: defaultdict[str, int] = defaultdict(int)
    answers: defaultdict[str, int] = defaultdict(int)
    total_ms: defaultdict[str, int] = defaultdict(int)
    for port in node.client_ports:
        for api_key, route in port.routes.items():
            name = APIS[api_key].name
            requests[name] += route.requests
            answers[name] += route.answers
            total_ms[name] += route.total_ms
    prefix = "kafka_network_requestmetrics_"
    samples = (((name,), count) for name, count in requests.items())
    yield counters(f"{prefix}requests_total", "Requests of clients.", ("request",), samples)
    times = SummaryMetricFamily(
        f"{prefix}totaltimems", "From receipt to answer, ms.", labels=("request",)
    )
    for name, count in answers.items():
        times.add_metric((name,), count, total_ms[name])
    yield times
    yield gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections of clients.",
        len(node.connections),
    )


def of_shares(node: MetricSources) -> Iterator[Metric]:
    """Yield the requests that failed by an exception, the memory of fetch sessions, and the groups'
    partitions that could not be loaded."""
    failures: defaultdict[str, int] = defaultdict(int)
    for port in node.client_ports:
        for api_key, route in port.routes.items():
            failures[APIS[api_key].name] += route.failures
    yield counters(
        "quorate_requests_failed_total",
        "Requests that failed by an exception that no handler expected.",
        ("request",),
        (((name,), count) for name, count in failures.items()),
    )
    sessions = node.replicas.session_cache
    name = "quorate_fetch_sessions_"
    help_ = "Estimated bytes of the consumers' fetch sessions."
    yield gauge(f"{name}bytes", help_, sessions.consumer_bytes)
    help_ = "Maximum bytes of the consumers' fetch sessions."
    yield gauge(f"{name}max_bytes", help_, sessions.max_consumer_bytes)
    help_ = "Fetch sessions that ended for lack of memory."
    yield counter(f"{name}ended_total", help_, sessions.evicted_for_bytes)
    help_ = "Partitions of __consumer_offsets that could not be loaded."
    yield gauge("quorate_groups_failed_shards", help_, node.groups.failed_shards)


def of_fetchers(node: MetricSources) -> Iterator[Metric]:
    """Yield the lag of each followed partition, in records, and the largest of them."""
    client = ("clientid",)
    lags = [((each.topic, str(each.key[1])), lag) for each, lag in node.replicas.fetchers.lags()]
    most = max((lag for _, lag in lags), default=0)
    help_ = "Records behind the leader's high watermark, the most of all partitions."
    name = "kafka_server_replicafetchermanager_maxlag"
    yield gauges(name, help_, client, [(("Replica",), most)])
    yield gauges(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Records behind the leader's high watermark.",
        (*client, *PARTITION),
        ((("ReplicaFetcherThread", *labels), lag) for labels, lag in lags),
    )


def of_quotas(quotas: BrokerQuotas, now_ms: int) -> Iterator[Metric]:
    """Yield the rates and the throttle times of clients that have quotas, and the totals."""
    addresses = quotas.connection_rates
    yield from throttles(
        [
            *((each.key, each.throttled, each.throttled_ms) for each in quotas.clients.rates),
            (CONNECTION_CREATION_RATE, addresses.throttled, addresses.throttled_ms),
        ]
    )
    for rates, kind, measure in (
        (quotas.clients.produce, "produce", "byte_rate"),
        (quotas.clients.fetch, "fetch", "byte_rate"),
        (quotas.clients.request, "request", "request_time"),
    ):
        yield from clients(rates, f"kafka_server_{kind}_", measure, now_ms)


def of_throttles(node: MetricSources) -> Iterator[Metric]:
    """Yield the rates of the replicas that the throttles of replication apply to."""
    help_ = "Bytes per second of the throttled replicas"
    replicas = node.replicas
    for side, throttle in (
        ("leader", replicas.leader_throttle),
        ("follower", replicas.follower_throttle),
    ):
        name = f"kafka_server_{side}replication_byte_rate"
        yield gauge(name, f"{help_} of this broker as a {side}.", throttle.byte_rate)


def of_metadata(node: MetricSources) -> Iterator[Metric]:
    """Yield the broker's state and the progress of its metadata replay."""
    image = node.core.image
    wall_ms = node.core.seams.clock.wall_ms()
    state = State.NOT_RUNNING if node.lifecycle is None else node.lifecycle.state
    yield gauge("kafka_server_kafkaserver_brokerstate", "3: running.", BROKER_STATES[state])
    values = (
        ("last_applied_record_offset", "The last record replayed.", image.last.offset),
        ("last_applied_record_timestamp", "When it was written.", image.last_timestamp_ms),
        ("last_applied_record_lag_ms", "Its age.", lag_ms(image.last_timestamp_ms, wall_ms)),
        ("metadata_load_error_count", "One stops the node.", node.core.failed),
        ("metadata_apply_error_count", "One stops the node.", node.core.failed),
    )
    for name, help_, value in values:
        yield gauge(f"kafka_server_brokermetadatametrics_{name}", help_, value)
    help_ = "Replayed metadata records that this broker has not acted on."
    unacted = max(0, node.core.replayed_offset - node.replicas.acted_offset)
    yield gauge("quorate_metadata_unacted_records", help_, unacted)
