"""Quotas of clusters of their own: the sample windows that the keys set, a restart, and a change
that a throttled consumer must not miss."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from quorate.quorum.protocol.schemas.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, running
from tests.ports.requests import READ, produced
from tests.ports.test_quotas import ME, change, fetch, topic


def test_the_windows_are_those_of_the_keys() -> None:
    """Two of three windows of 2 s, and a burst of two windows of 3 s."""
    with running(
        quota_window_num="3",
        quota_window_size_seconds="2",
        controller_quota_window_num="2",
        controller_quota_window_size_seconds="3",
    ) as node:
        world = node.prepared()
        request = produced(READ, world.read_id)
        size_bytes = len(encode(request, 9))
        change(node, ME, producer_byte_rate=10.0, controller_mutation_rate=1.0)
        raw = node.connect(BROKER_PORT)
        answer: Any = node.ask(raw, request, 9)
        assert answer.throttle_time_ms == round(size_bytes / 10 * 1000) - 4000
        raw = node.connect(CONTROLLERS_PORT)
        codes = []
        for name, partitions in (("a", 6), ("b", 1), ("c", 1)):
            made: Any = node.ask(raw, topic(name, partitions), 7)
            codes.append(made.topics[0].error_code)
        assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]


@pytest.mark.parametrize("snapshot_bytes", ["100", "20000000"])
def test_restarted_nodes_apply_the_stored_quotas(snapshot_bytes: str) -> None:
    """From a snapshot, and from the log."""
    with running(metadata_log_max_record_bytes_between_snapshots=snapshot_bytes) as node:
        world = node.prepared()
        change(node, ME, producer_byte_rate=10.0)
        (broker,), (controller,) = node.cluster.brokers, node.cluster.controllers
        for machine in (broker, controller):
            node.cluster.kill(machine)
            node.run(1.0)
            node.cluster.start(machine)
        node.run(15.0)
        raw = node.connect(BROKER_PORT)
        answer: Any = node.ask(raw, produced(READ, world.read_id), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert answer.throttle_time_ms > 0
        assert controller.process is not None and controller.process.controller is not None
        assert controller.process.controller.port._quotas.enabled


def test_a_withheld_change_of_the_log_start_is_sent_later() -> None:
    """No record announces it, so the session must remember that it was not sent."""
    with running() as node:
        world = node.prepared()
        raw, other = node.connect(BROKER_PORT), node.connect(BROKER_PORT)
        first: Any = node.ask(raw, fetch(world, 0, 0), 12)
        end = first.responses[0].partitions[0].high_watermark
        session, epoch = first.session_id, 1
        node.ask(raw, fetch(world, session, epoch, offset=end), 12)
        change(node, ME, consumer_byte_rate=5.0)
        throttled = 0
        while not throttled:
            epoch += 1
            answer: Any = node.ask(raw, fetch(world, session, epoch, offset=None), 12)
            throttled = answer.throttle_time_ms
        partition = DeleteRecordsPartition(partition_index=0, offset=end)
        topic = DeleteRecordsTopic(name=READ, partitions=(partition,))
        node.ask(other, DeleteRecordsRequest(topics=(topic,), timeout_ms=1000), 2)
        answer = node.ask(raw, fetch(world, session, epoch + 1, offset=None), 12)
        assert (answer.throttle_time_ms > 0, answer.responses) == (True, ())
        change(node, ME, consumer_byte_rate=None)
        answer = node.ask(raw, fetch(world, session, epoch + 2, offset=None), 12)
        (changed,) = answer.responses[0].partitions
        assert changed.log_start_offset == end


def test_topics_that_are_created_automatically_count() -> None:
    """Otherwise a client could create any number of them with Metadata requests."""
    with running(auto_create_topics_enable="true") as node:
        change(node, ME, controller_mutation_rate=1.0)
        raw = node.connect(BROKER_PORT)
        topics = tuple(MetadataRequestTopic(name=f"auto-{number}") for number in range(20))
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        asked: Any = node.ask(raw, request, 9)
        codes = [each.error_code for each in asked.topics]
        assert codes.count(ErrorCode.LEADER_NOT_AVAILABLE) == 12, "the last one makes a debt"
        assert codes.count(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) == 8
