"""Apache Kafka's own rates, its ConfigCommand and its producer, beside Quorate's quotas."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.clients.cluster import ProcessCluster, run_quorate
from tests.kafka.tools import TOOL_TIMEOUT_S, kafka, libs, missing
from tests.unit.quotas.histories import history, ours

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PROGRAM = Path(__file__).parent / "QuotaRates.java"


def test_rates_and_token_buckets_are_those_of_kafka() -> None:
    """300 random histories. A few of them are in tests/unit/quotas/kafka_rates.txt."""
    random = Random(2026)
    lines = [line for _ in range(300) for line in history(random)]
    ran = subprocess.run(
        ["java", "-cp", f"{libs()}/*", str(PROGRAM)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=True,
    )
    theirs = [tuple(map(float, line.split())) for line in ran.stdout.splitlines()]
    found = ours(lines)
    assert len(found) == len(theirs) > 5000
    for number, (mine, kafkas) in enumerate(zip(found, theirs, strict=True)):
        assert mine == pytest.approx(kafkas, rel=1e-9, abs=1e-6), number


def test_a_quota_that_kafkas_tool_sets_throttles_kafkas_producer(cluster: ProcessCluster) -> None:
    at = ("--bootstrap-server", cluster.bootstrap)
    assert kafka("topics", *at, "--create", "--topic", "slow").code == 0
    changed = kafka(
        "configs", *at, "--alter", "--client", "slow", "--add-config", "producer_byte_rate=20000"
    )
    assert changed.lines == ["Completed updating config for client slow."], changed.errors
    line = "Quota configs for client-id 'slow' are producer_byte_rate=20000.0"
    for describe in (
        kafka("configs", *at, "--describe", "--client", "slow").lines,
        run_quorate("configs", *at, "--describe", "--client", "slow").stdout.splitlines(),
    ):
        assert describe == [line]
    perf = kafka(
        "producer-perf-test",
        *("--topic", "slow", "--num-records", "320", "--record-size", "1000"),
        *("--throughput", "-1", "--print-metrics", "--producer-props"),
        *(f"bootstrap.servers={cluster.bootstrap}", "client.id=slow", "batch.size=2000"),
    )
    assert perf.code == 0, perf.errors
    throttled = [each for each in perf.lines if "produce-throttle-time-max" in each]
    assert throttled, perf.lines
    assert float(throttled[0].rpartition(":")[2]) > 0
