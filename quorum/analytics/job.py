"""A job for spark-submit that writes the history as Parquet, on the master of spark-submit:

    spark-submit --master spark://HOST:7077 JOB LOCATION... --out DIRECTORY [--tables NAME,NAME]

JOB is this file: `python -c "import quorate.quorum.analytics.job as job; print(job.__file__)"`.

In a session of Spark Connect, without spark-submit:

    SPARK_REMOTE=sc://HOST python JOB LOCATION... --out DIRECTORY

A location is a directory of metadata logs, a pattern, or a URL. Every table becomes a directory of
Parquet files, with the rows of all clusters. On every worker, PYSPARK_PYTHON must name an
interpreter that has `quorate[spark]`, and local directories must exist under the same path.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts the directory of this file first in sys.path. Its modules must not be importable
# as top-level modules.
sys.path[:] = [each for each in sys.path if Path(each).resolve() != Path(__file__).parent]

from pyspark.sql import SparkSession  # noqa: E402

from quorate.quorum.analytics.tables import TABLES, read_tables  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and write the tables. Exit with a message if a table does not exist."""
    parser = argparse.ArgumentParser(description="The history of a cluster as Parquet tables.")
    parser.add_argument("locations", nargs="+", metavar="LOCATION")
    parser.add_argument("--out", required=True, metavar="DIRECTORY")
    parser.add_argument("--tables", default=",".join(TABLES), metavar="NAME,NAME")
    chosen = parser.parse_args(arguments)
    names = chosen.tables.split(",")
    if unknown := sorted(set(names) - TABLES.keys()):
        parser.error(f"no such table: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    spark = SparkSession.builder.appName("quorate history").getOrCreate()
    try:
        tables = read_tables(spark, chosen.locations, only=names)
        for name in names:
            path = f"{chosen.out}/{name}"
            tables[name].write.mode("overwrite").parquet(path)
            sys.stdout.write(f"{name}: {path}\n")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
