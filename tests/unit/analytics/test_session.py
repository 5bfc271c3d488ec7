"""The local Spark session: Java and its Python workers exchange rows through Unix sockets."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from quorate.quorum.analytics.spark.session import LONGEST_SOCKET_DIRECTORY_BYTES, sockets_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]


def test_workers_exchange_rows_through_unix_sockets(spark: SparkSession) -> None:
    names = ("PYTHON_UNIX_DOMAIN_ENABLED", "PYTHON_WORKER_FACTORY_SOCK_DIR")
    rows = spark.sparkContext.parallelize([0], 1).map(lambda _: [os.environ[n] for n in names])
    enabled, directory = rows.collect()[0]
    assert enabled.lower() == "true"
    assert Path(directory).stat().st_mode & 0o077 == 0, "others may not enter"
    assert [each for each in os.listdir(directory) if each.endswith(".sock")]


def test_the_longest_directory_has_room_for_a_socket() -> None:
    with TemporaryDirectory(prefix="q", dir="/tmp") as root:
        directory = f"{root}/{'d' * (LONGEST_SOCKET_DIRECTORY_BYTES - len(root) - 1)}"
        os.mkdir(directory)
        assert sockets_in(directory)["spark.python.unix.domain.socket.dir"] == directory
        path = f"{directory}/.{uuid4()}.sock"
        assert len(path) <= 103
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path)


def test_workers_use_tcp_if_a_socket_would_have_too_long_a_path() -> None:
    assert sockets_in("/tmp/" + "d" * LONGEST_SOCKET_DIRECTORY_BYTES) == {}
