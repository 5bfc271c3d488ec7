"""One small Spark for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = {
    # Compiling a plan costs more than running it over a few hundred rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyarrow", reason="needs `pip install quorate[spark]`")
    pytest.importorskip("pyspark", reason="needs `pip install quorate[spark]`")
    from quorate.quorum.analytics.log.errors import NoJava
    from quorate.quorum.analytics.spark.java import find_java
    from quorate.quorum.analytics.spark.session import local_session

    try:
        find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    with local_session("tests") as session:
        for name, value in TINY.items():
            session.conf.set(name, value)
        yield session
