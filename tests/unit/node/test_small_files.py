"""Any bytes in a small file of a data directory are read or refused, within a bound of memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.config.key import ConfigError
from quorate.config.loader import read_file
from quorate.quorum.ids import Uuid
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME, FlushedMarker
from quorate.quorum.node.opening.directory_replacement import DECISION_FILE, finish_replacement
from quorate.quorum.node.opening.meta_properties import (
    META_COPY,
    META_FILE,
    MetaProperties,
    StorageError,
    encode,
    encode_copy,
    read_meta,
)
from quorate.quorum.node.replica.metadata_mark import MARK_NAME, Mark, read_mark
from quorate.quorum.node.replica.metadata_mark import encode as encode_mark
from quorate.quorum.offline.storage_format import bootstrap_snapshot
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME, ElectionFile
from quorate.quorum.raft.errors import ElectionFileError, GenerationFileError
from quorate.quorum.raft.generation import FILE_NAME, GenerationFile, Rebuild
from quorate.quorum.raft.generation import encode as encode_generation
from quorate.quorum.raft.quorum_state import encode_copy as encode_election
from quorate.quorum.raft.quorum_state import encode_v0, encode_v1
from tests.unit.node.small_files import TARGETS, disk_with

META = MetaProperties(cluster_id="c" * 22, node_id=1, directory_id=Uuid(b"d" * 16))
SAMPLES = (
    encode(META),
    encode_copy(encode(META)),
    encode_mark(Mark(directory_id=META.directory_id, epoch=3)),
    encode_v0(Election(3), (1, 2)),
    encode_v1(Election(3)),
    encode_election(Election(3)),
    encode_generation((Rebuild(id=META.directory_id, epoch=1, offset=5),)),
    b"0\n1\nt 0 12\n",
    b"0\n1\n3 12\n",
    b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    b'{"version":0,"brokerEpoch":12}',
    bootstrap_snapshot(0),
    b'{"controllers":[{"id":1,"log_dir":"/x","pid":null}],"brokers":[]}',
)
HARD = (
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"0\n\xc2\xb2\n",  # a digit that is no number
    b"0\n" + b"9" * 5_000 + b"\n",
    b"0\n1\nt 0 " + b"9" * 5_000 + b"\n",
    b'{"version":0,"brokerEpoch":1e999}',
    b'{"version":0,"brokerEpoch":' + b"9" * 4_000 + b"}",
    b"node.id=" + b"9" * 5_000 + b"\ncluster.id=c\nversion=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA",
    b"../../etc",
    b"__cluster_metadata-0./../../x",
    b"\\u",
    b"a=\\ud800",
    b"\xff\xfe\x00",
    bytes(1_000),
)


@pytest.mark.parametrize("name", TARGETS)
def test_hard_bytes(name: str) -> None:
    for content in (b"", *HARD, *SAMPLES):
        TARGETS[name](content)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_bytes(name: str, data: st.DataObject) -> None:
    TARGETS[name](data.draw(st.binary(max_size=200) | changed_samples()))


@st.composite
def changed_samples(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(content)))
        content[start : start + draw(st.integers(0, 3))] = draw(st.binary(max_size=8))
    return bytes(content)


def readers(root: str) -> Iterator[tuple[str, Callable[[OsDisk], object], type[Exception] | None]]:
    yield META_FILE, lambda disk: read_meta(disk, root), StorageError
    yield META_COPY, lambda disk: read_meta(disk, root), StorageError
    yield MARK_NAME, lambda disk: read_mark(disk, root), None
    for name in (KAFKA_NAME, COPY_NAME):
        yield name, lambda disk: ElectionFile(disk, root, ()).load(), ElectionFileError
    yield FILE_NAME, lambda disk: GenerationFile(disk, root).load(), GenerationFileError
    name = checkpoints.HIGH_WATERMARKS_NAME
    yield name, lambda disk: checkpoints.read_offsets(disk, root, name), CorruptCheckpoint
    yield checkpoints.EPOCHS_NAME, lambda disk: checkpoints.read_epochs(disk, root), None
    metadata = checkpoints.PARTITION_METADATA_NAME
    yield metadata, lambda disk: checkpoints.read_partition_metadata(disk, root), CorruptCheckpoint
    clean = checkpoints.CLEAN_SHUTDOWN_NAME
    yield clean, lambda disk: checkpoints.take_clean_shutdown(disk, root), None
    marker = FLUSHED_MARKER_NAME
    yield marker, lambda disk: FlushedMarker(disk, root), None
    properties = f"{root}/server.properties"
    yield "server.properties", lambda disk: read_file(properties), ConfigError


def test_a_gigabyte_is_not_read_whole(tmp_path: Path) -> None:
    disk = OsDisk()
    for name, read, declared in readers(str(tmp_path)):
        path = tmp_path / name
        with open(path, "wb") as file:
            file.truncate(1 << 30)
        tracemalloc.start()
        with suppress(*([declared] if declared else [])):
            assert read(disk) is None or declared is None
            assert declared is None, f"{name} was read"
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < 32 << 20, name
        path.unlink(missing_ok=True)
    disk.close()


def test_a_decision_that_names_no_backup_moves_nothing() -> None:
    for content in (b"../../etc", b"__cluster_metadata-0.x/../../y", b"", b"\xff"):
        disk = disk_with(DECISION_FILE, content)
        disk.make_dirs("/data/__cluster_metadata-0.rebuilt")
        disk.make_dirs("/data/__cluster_metadata-0")
        before = disk.list("/data")
        with pytest.raises(StorageError, match="names no backup"):
            finish_replacement(disk, "/data")
        assert disk.list("/data") == before
