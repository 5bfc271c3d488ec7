"""A small local Spark session: 1 GB of memory, no UI, only the loopback network, and by default two
cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from quorate.quorum.analytics.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    # Adaptive execution runs a job per stage, which costs more than it saves here.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a short-lived Java: it ends before the optimizing compiler would pay off."""
QUIET = """rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %m%n
"""
"""A log configuration that shows fatal errors only.

Failures are raised as exceptions, and the log would repeat them at length.
"""


@contextmanager
def local_session(
    app_name: str = "quorate", master: str = "local[2]", java_options: str = JAVA_OPTIONS
) -> Iterator[SparkSession]:
    """Yield a local Spark session with the data source `quorate.metadata`, and stop it at the end.

    If this process already has a session, that session is used, and is stopped at the end. Python
    workers run the same interpreter as the caller. The function sets JAVA_HOME, PYSPARK_PYTHON and
    PYSPARK_DRIVER_PYTHON in the environment of this process, and SPARK_LOCAL_IP if it is not set.
    They remain set. Raise NoJava if no supported Java is found."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from quorate.quorum.analytics.spark.registration import register

    with TemporaryDirectory(prefix="quorate-spark-") as directory:
        quiet = Path(directory) / "log4j2.properties"
        quiet.write_text(QUIET)
        options = f"{java_options} -Dlog4j2.configurationFile=file:{quiet}"
        builder = SparkSession.builder.master(master).appName(app_name).config(map=SETTINGS)
        spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
        try:
            register(spark)
            yield spark
        finally:
            spark.stop()
