"""One small Spark for all tests that need one, and a Python that cannot run its tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.quorum.analytics.log import clocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyarrow", reason="needs `pip install 'quorate[spark]'`")
    pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")
    from quorate.quorum.analytics.log.errors import NoJava
    from quorate.quorum.analytics.spark.java import find_java
    from quorate.quorum.analytics.spark.session import local_session
    from tests.unit.analytics.standalone import TINY

    try:
        find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    with local_session("tests") as session:
        for name, value in TINY.items():
            session.conf.set(name, value)
        yield session


@pytest.fixture(autouse=True)
def later_than_all_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that tests write have times that have not come yet."""
    monkeypatch.setattr(clocks, "now_ms", lambda: 4_000_000_000_000)
    monkeypatch.setattr(clocks, "modified_ms", lambda path: None)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a directory with a `python3` that finds no installed packages."""
    directory = tmp_path / "bin"
    directory.mkdir()
    python = directory / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return directory
