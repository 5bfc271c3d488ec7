"""The lines about the changes on which a broker acts: counts, and lines for each partition."""

from __future__ import annotations

import logging
import re

import pytest

from quorate.broker.replication.partitions import state_change_log
from quorate.cli.nodes.line_limit import MAX_LINES, LineLimit
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.ports.node import PortCluster, running

SUMMARY = re.compile(
    r"acted on the metadata below offset \d+: of its partitions, this broker leads (\d+) and "
    r"follows (\d+) from a new epoch, updates (\d+), and removes (\d+)\. It now leads \d+ and "
    r"follows \d+"
)


def create_and_delete(cluster: PortCluster) -> None:
    """Create a topic with 3 partitions, let a second pass, and delete the topic."""
    raw = cluster.connect(cluster.broker_port)
    topic = CreatableTopic(
        name="told", num_partitions=3, replication_factor=2, assignments=(), configs=()
    )
    cluster.ask(raw, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
    cluster.run(2.0)
    deleted = DeleteTopicState(name="told")
    cluster.ask(raw, DeleteTopicsRequest(topics=(deleted,), timeout_ms=10_000), 6)
    cluster.run(2.0)


def sums(caplog: pytest.LogCaptureFixture) -> list[int]:
    """Return the sums of the counts in all summaries: led, followed, updated, removed."""
    found = [SUMMARY.fullmatch(record.getMessage()) for record in caplog.records]
    counts = [[int(each) for each in match.groups()] for match in found if match]
    return [sum(column) for column in zip(*counts, strict=True)]


def test_one_setting_turns_the_lines_of_partitions_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with running(brokers=2, quorate_state_change_log_enable="true") as cluster:
        create_and_delete(cluster)
    lines = [each.getMessage() for each in caplog.records if each.name == "state.change"]
    first = [line for line in lines if line.startswith("partition told-1: ")]
    assert len(first) == 4, "both replicas take a role, and are removed"
    leads, follows = sorted(line for line in first if "epoch" in line)[::-1]
    leads, follows = (follows, leads) if "follows" in leads else (leads, follows)
    assert re.fullmatch(
        r"partition told-1: this broker leads from leader epoch 0, partition epoch 0, "
        r"isr \[\d, \d\], adding \[\], removing \[\], log 0 to 0, high watermark 0; "
        r"metadata below \d+",
        leads,
    )
    assert re.match(r"partition told-1: this broker follows broker \d from leader epoch 0", follows)
    assert len([line for line in first if "removes its replica, log 0 to 0" in line]) == 2


def test_the_counts_are_always_written_and_the_partitions_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with running(brokers=2) as cluster:
        create_and_delete(cluster)
    assert not [each for each in caplog.records if each.name == "state.change"]
    led, followed, updated, removed = sums(caplog)
    assert (led, followed, removed) == (3, 3, 6)
    assert updated == 0


def test_many_changes_share_a_summary(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_change_log, "SUMMARY_INTERVAL_MS", 60_000)
    caplog.set_level(logging.INFO)
    with running(brokers=2) as cluster:
        create_and_delete(cluster)
        assert not sums(caplog), "the interval is not over"
        cluster.run(60.0)
        assert sums(caplog) == [0, 0, 0, 6], "each partition is counted once, by its last change"
    lines = [each for each in caplog.records if SUMMARY.fullmatch(each.getMessage())]
    assert len(lines) == 2, "one of each broker"


def test_lines_of_partitions_are_not_limited() -> None:
    limit = LineLimit(lambda: 0.0)

    def passed(name: str) -> int:
        record = logging.LogRecord(name, logging.INFO, "", 0, "same", (), None)
        return sum(limit.filter(record) for _ in range(MAX_LINES + 5))

    assert passed("quorate.broker") == MAX_LINES
    assert passed("state.change") == MAX_LINES + 5
