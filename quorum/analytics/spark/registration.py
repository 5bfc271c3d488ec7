"""Registers the data source in a Spark session whose Python workers can run it.

Spark's tasks run in Python workers of their own. PySpark starts them with the interpreter that
PYSPARK_PYTHON names, or else with `python3` from PATH. If a job runs with the python of a virtual
environment that is not activated, that `python3` is another one, which does not have this package.

- If the master is local and the user chose no interpreter, the workers get that of the driver.
- If the user set `spark.pyspark.python` in the builder, the workers get that one. PySpark itself
  ignores it there.
- If workers run on other machines, or with a chosen interpreter, one task checks their modules. It
  runs once for each session. The workers of a Spark Connect server are checked, too.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from quorate.quorum.analytics.log.errors import WorkersLack

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

NEEDED = ("quorate.quorum.analytics.spark.rows", "quorate.quorum.analytics.spark.source")
"""The modules that tasks import. They import numpy, pyarrow and pyspark in turn."""
CHOICE = "spark.pyspark.python"
CHECKED = "spark.quorate.workers.checked"
"""The setting of the session that says that its workers were checked."""
BROADCAST_TIMEOUT, LONG_S = "spark.sql.broadcastTimeout", 86_400
"""The seconds for which a table waits for the time of the last record of each cluster, which needs
all records. Spark's default of 300 is too short for a log of 100 million records on two cores."""


def register(spark: SparkSession) -> None:
    """Register the data source `quorate.metadata` in the session, and allow its option `pushdown`.
    If the session has no BROADCAST_TIMEOUT, set LONG_S.

    Raise WorkersLack if the Python workers cannot import this package."""
    from quorate.quorum.analytics.spark.source import PUSHDOWN, MetadataLogSource

    if _may_lack_modules(spark) and spark.conf.get(CHECKED, "") != "true":
        check_workers(spark)
        spark.conf.set(CHECKED, "true")
    spark.conf.set(PUSHDOWN, "true")
    if spark.conf.get(BROADCAST_TIMEOUT, None) is None:
        spark.conf.set(BROADCAST_TIMEOUT, str(LONG_S))
    spark.dataSource.register(MetadataLogSource)


def _may_lack_modules(spark: SparkSession) -> bool:
    """Return True if the workers may run another interpreter than this process.

    Give them this process's interpreter, or the chosen one, where that is possible."""
    try:
        context = spark.sparkContext
    except Exception:  # The workers of Spark Connect belong to the server.
        return True
    if not (context.master or "").startswith("local"):
        return True
    context.pythonExec = interpreter(context)
    return os.path.realpath(context.pythonExec) != os.path.realpath(sys.executable)


def interpreter(context: SparkContext) -> str:
    """Return the interpreter for the workers of a local master: the chosen one, or this one."""
    chosen = os.environ.get("PYSPARK_PYTHON") or context.getConf().get(CHOICE)
    return chosen or sys.executable


def check_workers(spark: SparkSession) -> None:
    """Run one task that imports the modules which tasks need. Block.

    Raise WorkersLack, which names the interpreter, the missing module and the cure."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    try:
        with warnings.catch_warnings():
            # Spark 4.3 tries to translate each UDF into SQL, and warns if that is impossible.
            warnings.simplefilter("ignore")
            probed = f.udf(probe())
        (said,) = spark.range(1).select(probed("id")).head() or ("",)
    except PySparkException as error:
        interpreter, place = _of_workers(spark)
        raise WorkersLack(
            f"Spark's Python workers run {interpreter}, which did not run a first task: "
            f"{_reason(str(error))}. Set PYSPARK_PYTHON to a Python "
            f"{sys.version_info[0]}.{sys.version_info[1]} that has quorate[spark], {place}"
        ) from None
    executable, missing = json.loads(said)
    if missing:
        raise WorkersLack(
            f"Spark's Python workers run {executable}, which cannot import {missing}. Run "
            f"`{executable} -m pip install 'quorate[spark]'` on every worker, or set "
            "PYSPARK_PYTHON to an interpreter that has it"
        )


def probe() -> Callable[[int], str]:
    """Return a function that returns the interpreter, and the first error of an import, as JSON.

    The function is nested because Spark then sends its code. A worker without this package could
    not import a function of this module."""
    needed = NEEDED

    def look(_: int) -> str:
        import importlib
        import json
        import sys

        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError as error:
                return json.dumps([sys.executable, f"{error.name or name} ({error})"])
        return json.dumps([sys.executable, None])

    return look


def _of_workers(spark: SparkSession) -> tuple[str, str]:
    """Return the interpreter of the workers, and the place where a user sets it."""
    try:
        return str(spark.sparkContext.pythonExec), "on every worker"
    except Exception:  # Spark Connect
        return "the server's interpreter", "in the environment of the Spark Connect server"


def _reason(text: str) -> str:
    """Return the most useful line of an error of Spark: that of Python, or else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    of_python = [line for line in lines if "Error" in line or "PYTHON_VERSION" in line]
    return (of_python or lines or [""])[-1 if of_python else 0][:300]
