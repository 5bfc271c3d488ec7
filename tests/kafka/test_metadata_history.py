"""The analytics tables of a log that a real Apache Kafka writes during the test.

The log holds changes of voters, an aborted transaction and elections. The tables equal those of the
oracle, and the state at the end equals the one that Kafka's own client saw.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.analytics.replay.moment_json import as_json
from tests.kafka.metadata_history import written
from tests.kafka.tools import libs, missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(900),
]


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")
    from quorate.quorum.analytics.spark.session import local_session

    with local_session("tests") as session:
        yield session


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_history_that_kafka_writes_now(spark: SparkSession, tmp_path: Path) -> None:
    from tests.unit.analytics.check_tables import assert_as_the_oracle_says

    segment, said = written(libs(), tmp_path)
    tables = assert_as_the_oracle_says(spark, segment.parent, segment.read_bytes()).tables
    assert [row["voters"] for row in tables["quorum"]] == [[1], [1, 2], [1], [1]]
    assert {row["topic"] for row in tables["topics"]} == {"kept", "gone", "after"}
    assert seen_at(segment.parent, said["offset"]) == said["final"]


def seen_at(directory: Path, offset: int) -> dict[str, list[dict[str, object]]]:
    names = ("partition", "leader", "isr", "replicas")
    return {
        topic["name"]: [{name: each[name] for name in names} for each in topic["partitions"]]
        for topic in as_json(moment(directory, offset=offset))["topics"]
    }
