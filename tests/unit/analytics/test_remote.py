"""Logs on filesystems of pyarrow and fsspec: a real S3-compatible server, and memory."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")

from pyarrow import fs  # type: ignore[import-untyped]

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.log.files import (
    _stores,
    below,
    files_in,
    name_of,
    opened,
    parent_of,
)
from quorate.quorum.analytics.log.remote_files import ArrowStore, FsspecStore
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.test_places import rows
from tests.unit.metadata.kafka_dump import C1

START_S = 60.0


def test_paths_of_urls_keep_their_query() -> None:
    directory = "s3://bucket/logs?endpoint_override=127.0.0.1:5000&scheme=http"
    file = below(directory, "0.log")
    assert file == "s3://bucket/logs/0.log?endpoint_override=127.0.0.1:5000&scheme=http"
    assert (parent_of(file), name_of(file)) == (directory, "0.log")


def test_a_filesystem_of_pyarrow_lists_and_matches(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_segment(tmp_path / "west" / name, 0, b"".join(batches()))
    store = ArrowStore(fs.LocalFileSystem())
    found = store.matching(f"{tmp_path}/w*/[ab]/__cluster*")
    assert [Path(each).parent.name for each in found] == ["a", "b"]
    assert list(store.files(found[0])) == [f"{0:020d}.log"]
    assert store.files(f"{tmp_path}/nothing") == {}
    with store.open(f"{found[0]}/{0:020d}.log") as file:
        file.seek(16)
        assert file.read(1) == b"\x02"


def test_a_log_in_the_memory_of_fsspec() -> None:
    """pyarrow does not know this scheme, so fsspec reads it."""
    fsspec = pytest.importorskip("fsspec", reason="needs `pip install fsspec`")
    memory = fsspec.filesystem("memory")
    memory.makedirs("/history/node-1", exist_ok=True)
    try:
        for path in C1.iterdir():
            memory.pipe_file(f"/history/node-1/{path.name}", path.read_bytes())
        store = _stores("memory", "history", "")
        assert isinstance(store, FsspecStore)
        assert rows("memory://history/node-1") == rows(C1)
        assert rows("memory://history/node-[0-9]") == rows(C1)
        size = files_in("memory://history/node-1")["quorum-state"]
        with opened("memory://history/node-1/quorum-state") as file:
            file.seek(1)
            assert len(file.read()) == size - 1
        assert files_in("memory://history/nothing") == {}
        with pytest.raises(BadOption, match="nothing matches"):
            rows("memory://history/other-*")
    finally:
        memory.rm("/history", recursive=True)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """Yield the address of an S3-compatible server that holds the log of a real Kafka."""
    pytest.importorskip("moto", reason="needs `pip install 'moto[server]'`")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with (
        open(tmp_path / "server.log", "wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
        ) as server,
    ):
        try:
            reached(server, port)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def reached(server: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > end_s:
                raise
            time.sleep(0.1)


@pytest.mark.long
def test_a_log_in_s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = fs.S3FileSystem(
        endpoint_override=endpoint, scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    made.create_dir("logs")
    for path in C1.iterdir():
        with made.open_output_stream(f"logs/west/node-1/{path.name}") as file:
            file.write(path.read_bytes())
    query = f"?endpoint_override={endpoint}&scheme=http&region=us-east-1"
    assert rows(f"s3://logs/west/node-1{query}") == rows(C1)
    assert rows(f"s3://logs/w*/node-[0-9]{query}") == rows(C1)
    size = files_in(f"s3://logs/west/node-1{query}")["quorum-state"]
    with opened(f"s3://logs/west/node-1/quorum-state{query}") as file:
        assert len(file.read()) == size
    with pytest.raises(BadOption, match="nothing matches"):
        rows(f"s3://logs/east*{query}")
