"""The same job by spark-submit, on a standalone master with two workers and locally, on a log of
Kafka and on one of Quorate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from quorate.quorum.analytics.log.errors import NoJava
from quorate.quorum.analytics.log.walk import walk
from quorate.quorum.analytics.spark.java import find_java
from quorate.quorum.analytics.tables import TABLES
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord
from tests.unit.analytics.standalone import standalone, submit
from tests.unit.metadata.kafka_dump import C1

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]
JOB = Path(__file__).parents[3] / "quorum" / "analytics" / "job.py"


@pytest.fixture(autouse=True)
def java() -> None:
    try:
        find_java()
    except NoJava as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=["kafka", "quorate"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the metadata log of a real Kafka, and that of a controller of `quorate up` whose
    cluster lost a broker."""
    if request.param == "kafka":
        return C1
    pytest.importorskip("confluent_kafka", reason="needs `pip install confluent-kafka`")
    from tests.clients.cluster import running, wait_for
    from tests.clients.librdkafka import admin, create_topic

    with running(tmp_path_factory.mktemp("quorate") / "cluster") as cluster:
        create_topic(admin(cluster.bootstrap), "kept", 3, config={"min.insync.replicas": "2"})
        cluster.kill(cluster.entry()["brokers"][0]["id"])
        written = Path(cluster.entry()["controllers"][0]["log_dir"])
        wait_for(lambda: fencings(written) > 0, "a broker is fenced")
    return written


def fencings(directory: Path) -> int:
    """Return the number of sessions of brokers that ended, as far as the log has them."""
    return sum(
        isinstance(each.message, BrokerRegistrationChangeRecord) and each.message.fenced == 1
        for each in walk(directory)
    )


def rows_of(directory: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: sorted(pq.read_table(directory / name).to_pylist(), key=repr) for name in TABLES}


def executors_with_tasks(events: Path) -> set[str]:
    found = set()
    for path in events.rglob("events_*"):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd":
                found.add(event["Task Info"]["Executor ID"])
    return found


def test_two_workers_make_what_one_process_makes(tmp_path: Path, log: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with standalone(tmp_path) as master:
        said = submit(master, settings, str(JOB), str(log), "--out", str(tmp_path / "cluster"))
    assert [line.partition(":")[0] for line in said.splitlines()] == list(TABLES)
    assert executors_with_tasks(events) == {"0", "1"}
    submit("local[2]", {}, str(JOB), str(log), "--out", str(tmp_path / "local"))
    on_cluster = rows_of(tmp_path / "cluster")
    assert on_cluster == rows_of(tmp_path / "local")
    assert len(on_cluster["records"]) == 479 if log == C1 else len(on_cluster["records"]) > 20
    assert any(row["ended"] for row in on_cluster["sessions"])
