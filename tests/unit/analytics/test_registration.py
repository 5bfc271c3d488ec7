"""Jobs whose workers would run an interpreter without this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.errors import NoJava
from quorate.quorum.analytics.spark.java import find_java
from tests.unit.metadata.kafka_dump import C1

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]
JOB = """
from pyspark.sql import SparkSession
from quorate.quorum.analytics import WorkersLack, register

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
try:
    register(spark)
    print("rows:", spark.read.format("quorate.metadata").load({log!r}).count())
except WorkersLack as error:
    print("lack:", error)
spark.stop()
"""


def run_job(directory: Path, **environment: str) -> str:
    """Run the job as `python job.py`, and return its output."""
    try:
        home = find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    job = directory / "job.py"
    job.write_text(JOB.format(log=str(C1)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    settings = {"JAVA_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    done = subprocess.run(
        [sys.executable, str(job)],
        env=kept | settings,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.long
def test_workers_of_a_local_master_run_the_python_of_the_job(tmp_path: Path, bare: Path) -> None:
    """`python3` of PATH is another interpreter, as in a virtual environment not activated."""
    said = run_job(tmp_path, PATH=f"{bare}:{os.environ['PATH']}")
    assert said.splitlines() == ["rows: 479"]


@pytest.mark.long
def test_a_chosen_interpreter_that_lacks_the_package_is_named(tmp_path: Path, bare: Path) -> None:
    said = run_job(tmp_path, PYSPARK_PYTHON=str(bare / "python3"))
    assert said.startswith(f"lack: Spark's Python workers run {bare / 'python3'}, which")
    assert "No module named 'pyarrow'" in said and "quorate[spark], on every worker" in said
