"""/metrics: every name that dashboards for Kafka ask for, and values after scripted events."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorate.broker.metrics.requests import DELAYED
from quorate.broker.replication.appends.delayed_produce import DelayedProduce
from quorate.broker.replication.appends.delete_records import DelayedDeleteRecords
from quorate.broker.replication.fetches.consumer_fetches import DelayedFetch
from quorate.broker.replication.partitions.traffic import TopicTraffic, Traffic
from quorate.quorum.controller.state.messages import AllocateProducerIdsRequest
from quorate.quorum.histogram import Histogram
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import NO_LEADER, RECOVERING, PartitionChangeRecord
from quorate.quorum.protocol.hot import ProducePartition, ProducePartitionResult
from quorate.quorum.raft.effects import Role, RoleChanged
from quorate.quorum.watch import metrics
from quorate.quorum.watch.declaration import Durations, Gauge
from quorate.quorum.watch.loop_lag import INTERVAL_MS, LoopLag
from quorate.quorum.watch.measures import HALF_WINDOW_MS, Latency, QuorumMeasures, Rate
from quorate.quorum.watch.metrics import SAMPLES_AT_ONCE, rendered
from quorate.quorum.watch.recent_changes import DecidedChanges, RecentChanges
from tests.unit.rpc.kafka.fakes import FakeClock
from tests.unit.watch.node import CombinedNode, create_topic, made, running, until

pytestmark = pytest.mark.timeout(60)

GROUPS = {
    "kafka_controller_kafkacontroller_": """activecontrollercount offlinepartitionscount
        activebrokercount fencedbrokercount globaltopiccount globalpartitioncount
        preferredreplicaimbalancecount lastappliedrecordoffset lastappliedrecordlagms
        lastappliedrecordtimestamp lastcommittedrecordoffset metadataerrorcount
        newactivecontrollerscount timedoutbrokerheartbeatcount eventqueueoperationsstartedcount
        eventqueueoperationstimedoutcount""",
    "kafka_controller_controllerstats_": "uncleanleaderelections_total",
    "kafka_server_replicamanager_": """underreplicatedpartitions underminisrpartitioncount
        atminisrpartitioncount leadercount partitioncount offlinereplicacount reassigningpartitions
        isrshrinks_total isrexpands_total failedisrupdates_total""",
    "kafka_cluster_partition_": """replicascount underminisr atminisr insyncreplicascount
        underreplicated""",
    "kafka_server_raftmetrics_": """current_state current_leader current_vote current_epoch
        high_watermark log_end_offset append_records_rate fetch_records_rate commit_latency_avg
        commit_latency_max election_latency_avg election_latency_max
        number_unknown_voter_connections poll_idle_ratio_avg""",
    "kafka_server_brokertopicmetrics_": """messagesin_total bytesin_total bytesout_total
        totalproducerequests_total totalfetchrequests_total failedproducerequests_total
        failedfetchrequests_total replicationbytesin_total reassignmentbytesin_total
        nokeycompactedtopicrecords_total""",
    "kafka_network_requestmetrics_": "requests_total totaltimems_count totaltimems_sum",
    "kafka_log_log_": "size logendoffset",
    "kafka_log_logflushstats_": "logflushrateandtimems_count logflushrateandtimems_sum",
    "quorate_metadata_": "unreplayed_records unacted_records",
    "quorate_isr_": """proposals_waiting proposals_in_flight proposals_oldest_seconds
        requests_repeated_total""",
    "quorate_controller_": """queued_requests oldest_queued_request_seconds uncommitted_answers
        broker_unreplayed_records""",
    "quorate_recompress": "ed_batches_total ion_waiting_bytes",
    "kafka_log_logcleaner_": """max_buffer_utilization_percent cleaner_recopy_percent
        max_clean_time_secs max_compaction_delay_secs""",
    "kafka_log_logcleanermanager_": """max_dirty_percent time_since_last_run_seconds
        uncleanable_partitions uncleanable_partitions_bytes""",
    "kafka_server_replicafetchermanager_": "maxlag",
    "kafka_server_metadataloader_": "currentmetadataversion handleloadsnapshotcount",
    "kafka_server_snapshotemitter_": """latestsnapshotgeneratedbytes
        latestsnapshotgeneratedagems""",
    "kafka_server_kafkaserver_": "brokerstate",
    "process_": "cpu_seconds_total resident_memory_bytes",
}
SPACE = ("free", "volume")
NAMES = [prefix + name for prefix, names in GROUPS.items() for name in names.split()]
ONLY_FOLLOWERS_HAVE = "kafka_server_fetcherlagmetrics_consumerlag"

Samples = dict[tuple[str, frozenset[str]], float]


async def scraped(node: CombinedNode) -> Samples:
    """By name and label values."""
    answer = await node.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert f"# TYPE {ONLY_FOLLOWERS_HAVE} gauge" in answer.body.decode()
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


async def test_the_metrics_of_a_node_after_some_work(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        await create_topic(node, "orders", 3)
        await until(lambda: len(node.broker.replicas.registry) == 3)
        appended = ProducePartition("orders", ZERO_UUID, 0, batch(b"one", b"two"))
        missing = ProducePartition("orders", ZERO_UUID, 7, batch(b"three"))
        errors: list[int] = []

        def done(results: list[ProducePartitionResult]) -> None:
            errors.extend(each.error for each in results)

        node.broker.replicas.append([appended, missing], 1, 1000, done)  # type: ignore[arg-type]
        assert [bool(each) for each in errors] == [False, True]
        found = await scraped(node)

    names = {name for name, _ in found}
    assert [name for name in NAMES if name not in names] == []

    def value(name: str, *labels: str) -> float:
        return found[name, frozenset(labels)]

    controller = "kafka_controller_kafkacontroller_"
    assert value(controller + "activecontrollercount") == 1
    assert value(controller + "activebrokercount") == 1
    assert value(controller + "fencedbrokercount") == 0
    assert value(controller + "globaltopiccount") == 1
    assert value(controller + "globalpartitioncount") == 3
    assert value(controller + "newactivecontrollerscount") == 1
    replicas = "kafka_server_replicamanager_"
    assert value(replicas + "leadercount") == value(replicas + "partitioncount") == 3
    assert value(replicas + "underreplicatedpartitions") == 0
    assert value(replicas + "atminisrpartitioncount") == 3
    assert value("kafka_cluster_partition_insyncreplicascount", "orders", "2") == 1
    traffic = "kafka_server_brokertopicmetrics_"
    assert value(traffic + "messagesin_total", "orders") == 2
    assert value(traffic + "messagesin_total", "") == 2
    assert value(traffic + "bytesin_total", "orders") == len(batch(b"one", b"two"))
    assert value(traffic + "totalproducerequests_total", "orders") == 1
    assert value(traffic + "totalproducerequests_total", "") == 2
    assert value(traffic + "failedproducerequests_total", "") == 1
    assert value("kafka_log_log_logendoffset", "orders", "0") == 2
    assert value("kafka_log_log_size", "orders", "0") == len(batch(b"one", b"two"))
    raft = "kafka_server_raftmetrics_"
    assert value(raft + "current_state", "leader") == 1
    assert value(raft + "current_leader") == value(raft + "current_vote") == 1
    assert value(raft + "current_epoch") == 1
    assert value(raft + "high_watermark") > 0
    assert value(raft + "append_records_rate") > 0
    assert not math.isnan(value(raft + "commit_latency_avg"))
    assert not math.isnan(value(raft + "election_latency_max"))
    assert 0 <= value(raft + "poll_idle_ratio_avg") <= 1
    directory = str(tmp_path / "node")
    free, size = (value(f"quorate_log_directory_{name}_bytes", directory) for name in SPACE)
    assert 0 < free <= size
    assert value("kafka_server_metadataloader_currentmetadataversion") == 27
    assert value("kafka_server_kafkaserver_brokerstate") == 3


async def test_many_scrapes_cost_no_more_than_one(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        first = await node.get("/metrics")
        epoch = node.core.image.brokers[1].epoch
        await node.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
        assert (await node.get("/metrics")).body == first.body


def test_text_in_pieces_is_the_text_as_a_whole() -> None:
    values = [((str(n),), n) for n in range(3 * SAMPLES_AT_ONCE + 1)]
    family = Gauge("a_name", "Help.", ("n",)).each(values)
    pieces = list(rendered(family))
    assert len(pieces) == 4
    (parsed,) = text_string_to_metric_families(b"".join(pieces).decode())
    assert [each.value for each in parsed.samples] == list(range(3 * SAMPLES_AT_ONCE + 1))
    assert b"".join(pieces).count(b"# TYPE") == 1
    empty = b"".join(rendered(Gauge("b_name", "Help.", ("n",)).each([])))
    assert empty == b"# HELP b_name Help.\n# TYPE b_name gauge\n"


def batch(*values: bytes) -> memoryview:
    made = build_value_batch(values, base_offset=0, leader_epoch=0, timestamp_ms=1_700_000_000_000)
    return memoryview(bytearray(made))


def test_latencies_are_of_the_last_minute() -> None:
    latency = Latency()
    assert math.isnan(latency.average_ms(0)) and math.isnan(latency.max_ms(0))
    latency.note(10, 0)
    latency.note(30, 1000)
    assert (latency.average_ms(1000), latency.max_ms(1000)) == (20, 30)
    later_ms = HALF_WINDOW_MS + 1
    latency.note(2, later_ms)
    assert (latency.average_ms(later_ms), latency.max_ms(later_ms)) == (14, 30)
    assert (latency.average_ms(2 * later_ms), latency.max_ms(2 * later_ms)) == (2, 2)
    assert math.isnan(latency.max_ms(5 * later_ms))


def test_a_rate_is_over_the_last_window() -> None:
    rate = Rate(0)
    assert rate.of(0, 0) == 0
    assert rate.of(10, 1000) == 10
    assert rate.of(20, 2000) == 10
    assert rate.of(20, 10 * HALF_WINDOW_MS) < 1
    assert rate.of(20, 13 * HALF_WINDOW_MS) == 0


def test_elections_and_commits_are_measured() -> None:
    clock = FakeClock(1000)
    measures = QuorumMeasures(clock, 0)
    measures.on_role(RoleChanged(Role.PROSPECTIVE, 1, -1))
    clock.time_ms += 5
    measures.on_role(RoleChanged(Role.CANDIDATE, 2, -1))
    clock.time_ms += 15
    measures.on_role(RoleChanged(Role.LEADER, 2, 1))
    assert measures.elections.max_ms(clock.time_ms) == 20
    assert measures.new_controllers == 1
    measures.on_appended(9, 3)
    measures.on_appended(12, 3)  # one commit at a time is followed
    clock.time_ms += 4
    measures.on_committed(9)
    assert math.isnan(measures.commits.max_ms(clock.time_ms))
    clock.time_ms += 3
    measures.on_committed(10)
    assert measures.commits.max_ms(clock.time_ms) == 7
    assert measures.appended == 6
    measures.on_role(RoleChanged(Role.FOLLOWER, 3, 2))
    measures.on_role(RoleChanged(Role.FOLLOWER, 3, 2))
    assert measures.new_controllers == 2
    assert measures.election_ends == {"leader": 1}
    assert (measures.election_times.count, measures.election_times.sum_us) == (1, 20_000)


def test_the_lag_of_the_loop_is_measured() -> None:
    clock = FakeClock()
    lag = LoopLag(clock)
    lag.start()
    clock.advance(INTERVAL_MS + 30)
    clock.advance(INTERVAL_MS)
    assert (lag.times.count, lag.times.sum_us) == (2, 30_000)
    lag.close()
    assert clock.waiting == 0


def test_changes_of_leaders_are_counted_by_kind_and_cause() -> None:
    changes = [
        PartitionChangeRecord(leader=2, cause=Cause.CONNECTION_LOST),
        PartitionChangeRecord(leader=NO_LEADER, cause=Cause.CONNECTION_LOST),
        PartitionChangeRecord(leader=3, leader_recovery_state=RECOVERING),
        PartitionChangeRecord(isr=(1, 2), cause=Cause.ISR_EXPAND),
    ]
    recent = RecentChanges()
    recent.appended([DecidedChanges(5, changes, 0)], 0)
    assert recent.leader_changes == {
        ("clean", "connection-lost"): 1,
        ("lost", "connection-lost"): 1,
        ("unclean", "unknown"): 1,
    }


def test_delayed_requests_have_the_names_of_their_classes() -> None:
    classes = (DelayedProduce, DelayedFetch, DelayedDeleteRecords)
    assert {each.__name__ for each in classes} == set(DELAYED)


def test_a_histogram_counts_up_to_its_bounds() -> None:
    histogram = Histogram()
    for duration_us in (0, 100, 101, 30_000_001):
        histogram.observe(duration_us)
    assert (histogram.counts[:2], histogram.counts[-1], histogram.count) == ([2, 1], 1, 4)
    family = Durations("a_seconds", "Help.").of(histogram)
    values = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    assert (values["0.0001"], values["0.00025"], values["30.0"], values["+Inf"]) == (2, 3, 3, 4)
    assert (values["a_seconds_sum"], values["a_seconds_count"]) == (30.000202, 4)


def test_totals_keep_what_topics_that_have_gone_counted() -> None:
    traffic = Traffic()
    traffic.of("kept").messages_in += 3
    traffic.of("gone").messages_in += 4
    assert traffic.by_topic({"kept"}) == {"kept": TopicTraffic(messages_in=3)}
    assert traffic.total().messages_in == 7
    traffic.of("gone").messages_in += 1  # created anew
    assert traffic.total().messages_in == 8


class CostlyClock(FakeClock):
    """The CPU time grows by 400 ms between two readings."""

    used_ms = 0.0

    def cpu_ms(self) -> float:
        self.used_ms += 400
        return self.used_ms


async def test_a_text_that_cost_much_stays_fresh_for_longer(tmp_path: Path) -> None:
    async with made(tmp_path / "node") as node:
        endpoints = node.core.http_endpoints
        exposition = metrics.Exposition(node.core, endpoints.measures, endpoints.life_cycle, ())
        clock = CostlyClock()
        exposition._clock = clock
        first = (await exposition.response()).body
        for waited_ms, same in ((metrics.FRESH_FACTOR * 400 - 1, True), (1, False)):
            clock.advance(waited_ms)
            assert ((await exposition.response()).body is first) is same
