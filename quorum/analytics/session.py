"""A small local Spark: two cores, little memory, no UI, no network beyond this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quorate.quorum.analytics import register
from quorate.quorum.analytics.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts sooner
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


@contextmanager
def local_session(app_name: str = "quorate", master: str = "local[2]") -> Iterator[SparkSession]:
    """A session that knows `quorate.metadata`. Its Python workers run this very interpreter."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master(master).appName(app_name).config(map=SETTINGS).getOrCreate()
    try:
        register(spark)
        yield spark
    finally:
        spark.stop()
