"""A small local Spark session: a heap of 1.5 GB, no UI, only the loopback network, and by default
two cores. Java takes up to 0.5 GB in addition.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from quorate.quorum.analytics.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_PER_TASK = "spark.quorate.bytesPerTask"
"""A setting of the sessions of this module: the bytes of the log that one task of a shuffle gets.

Their rows take about seven times as much. A task with much more would sort them on the disk."""
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
MIN_PARTITIONS, MAX_PARTITIONS = 2, 2_000
SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1536m",
    SHUFFLE_PARTITIONS: str(MIN_PARTITIONS),
    BYTES_PER_TASK: str(16 << 20),
    # Each sort and each window of a task holds a page or more. Spark would choose pages of 32 MB,
    # and tables with many windows need more of these than there are.
    "spark.buffer.pageSize": "4m",
    # Each file of spilled rows that is read takes 1 MB of memory, and with read-ahead 3 MB.
    "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
    # Adaptive execution runs a job per stage, which costs more than it saves here.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a short-lived Java: it ends before the optimizing compiler would pay off."""
ARROW_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow's Java library does not check each access to a row. Arrow in Python made the rows."""
LONGEST_SOCKET_DIRECTORY_BYTES = 60
"""The longest path of a directory for the sockets of Spark's workers. Spark adds a name of 43
bytes, and macOS, the narrowest system, takes paths of 103 bytes."""
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


def sockets_in(directory: str) -> dict[str, str]:
    """Return the settings with which Java and its Python workers exchange rows through Unix
    sockets in `directory`, which only this user may enter. They take less processor time than TCP.
    Return no settings if the path is too long for a socket."""
    if len(os.fsencode(directory)) > LONGEST_SOCKET_DIRECTORY_BYTES:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def divide_shuffles(spark: SparkSession, log_bytes: int) -> None:
    """Set the number of tasks of a shuffle for queries over logs of this size.

    Do nothing in a session that `local_session` did not make. The user has configured it, or Spark
    divides the shuffles itself."""
    per_task = spark.conf.get(BYTES_PER_TASK, "")
    if per_task:
        wanted = -(-log_bytes // int(per_task))
        partitions = min(max(wanted, MIN_PARTITIONS), MAX_PARTITIONS)
        spark.conf.set(SHUFFLE_PARTITIONS, str(partitions))


def start_java(settings: Mapping[str, Any], log: Path) -> None:
    """Start Spark's Java with its standard error in the file `log`, unless this process has one.

    Java and Spark's launcher write lines there that concern no user, such as the names of
    incubator modules. If Java does not start, its lines are written to this process's standard
    error, and the exception of pyspark is raised."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False)
    conf.setAll([(name, str(value)) for name, value in settings.items()])
    with log.open("wb") as file:
        try:
            SparkContext._ensure_initialized(
                gateway=launch_gateway(  # type: ignore[no-untyped-call]
                    conf, popen_kwargs={"stderr": file}
                )
            )
        except Exception:
            sys.stderr.write(log.read_text(errors="replace"))
            raise


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
        options = f"{java_options} {ARROW_OPTIONS} -Dlog4j2.configurationFile=file:{quiet}"
        settings = {
            **SETTINGS,
            **sockets_in(directory),
            "spark.driver.extraJavaOptions": options,
        }
        start_java(settings, Path(directory) / "java.log")
        builder = SparkSession.builder.master(master).appName(app_name).config(map=settings)
        spark = builder.getOrCreate()
        try:
            register(spark)
            yield spark
        finally:
            spark.stop()
