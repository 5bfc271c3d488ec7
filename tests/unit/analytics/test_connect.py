"""The same job in a session of Spark Connect, whose Python workers belong to a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")
pytest.importorskip("grpc_status", reason="needs `pip install 'pyspark[connect]'`")

from quorate.quorum.analytics.tables import TABLES
from tests.unit.analytics.standalone import connect_server, run, submit
from tests.unit.analytics.test_standalone import JOB, java, log, rows_of
from tests.unit.metadata.kafka_dump import C1

__all__ = ["java", "log"]
pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]
QUESTIONS = """
import sys
from pyspark.sql import SparkSession
from quorate.quorum import analytics

log, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
print(type(spark).__module__)
try:
    analytics.register(spark)
except analytics.WorkersLack as error:
    print("lack:", error)
    sys.exit()
types = spark.read.format("quorate.metadata").load(log).where("type = 'TOPIC_RECORD'")
print(types.count())
analytics.views(spark, log)
print(spark.sql("SELECT count(*) FROM isr WHERE below_min").head()[0])
reader = spark.readStream.format("quorate.metadata").option("maxRecordsPerBatch", "100")
writer = reader.load(log).writeStream.format("parquet").option("checkpointLocation", out + "/at")
writer.trigger(availableNow=True).start(out + "/rows").awaitTermination()
print(spark.read.parquet(out + "/rows").select("offset").distinct().count())
spark.stop()
"""


def test_a_connect_server_makes_what_one_process_makes(tmp_path: Path, log: Path) -> None:
    asked = tmp_path / "questions.py"
    asked.write_text(QUESTIONS)
    with connect_server(tmp_path) as remote:
        job = (sys.executable, str(JOB), str(log), "--out", str(tmp_path / "remote"))
        named = run(job, SPARK_REMOTE=remote)
        assert [line.partition(":")[0] for line in named.splitlines()] == list(TABLES)
        command = (sys.executable, str(asked), str(log), str(tmp_path / "stream"))
        answers = run(command, SPARK_REMOTE=remote).splitlines()
    submit("local[2]", {}, str(JOB), str(log), "--out", str(tmp_path / "local"))
    local = rows_of(tmp_path / "local")
    assert rows_of(tmp_path / "remote") == local
    below_min = sum(row["below_min"] is True for row in local["isr"])
    records = local["records"]
    topics = sum(row["type"] == "TOPIC_RECORD" for row in records)
    offsets = len({row["offset"] for row in records})
    said = [str(each) for each in (topics, below_min, offsets)]
    assert answers == ["pyspark.sql.connect.session", *said]
    assert (topics, offsets) == (13, 479) if log == C1 else topics > 0


def test_a_connect_server_whose_python_lacks_the_package_is_named(
    tmp_path: Path, bare: Path
) -> None:
    asked = tmp_path / "questions.py"
    asked.write_text(QUESTIONS)
    with connect_server(tmp_path, python=str(bare / "python3")) as remote:
        command = (sys.executable, str(asked), str(C1), str(tmp_path / "stream"))
        said = run(command, SPARK_REMOTE=remote).splitlines()
    assert said[0] == "pyspark.sql.connect.session"
    assert said[1].startswith(
        "lack: Spark's Python workers run the server's interpreter, which did not"
    )
    assert "No module named 'pyarrow'" in said[1]
    assert said[1].endswith("quorate[spark], in the environment of the Spark Connect server")
