"""meta.properties, Kafka's file with the identity of a data directory, and its checksummed copy.

| meta.properties | its copy | a start |
|---|---|---|
| valid | valid and equal | continues |
| valid | missing or damaged | writes the copy; Apache Kafka formats a directory without one |
| missing or damaged | valid | writes meta.properties |
| valid | valid and different | is refused, because one identity is wrong and nothing says which |
| damaged | missing or damaged | is refused |
| missing | damaged | is refused |
| missing | missing | is refused, because the directory is not formatted |
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from crc32c import crc32c

from quorate.config import properties
from quorate.config.key import ConfigError
from quorate.quorum.ids import Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.files.checkpoints import bounded, read_small, replace
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.seams import Disk

META_FILE = "meta.properties"
META_COPY = "quorate-meta.properties"
VERSION = "1"
"""The only value of `version` that a node accepts."""
MAX_META_BYTES = 64 * 1024
MAX_NODE_ID = (1 << 31) - 1

logger = logging.getLogger("quorate.storage")


class StorageError(Exception):
    """A data directory must not be used as requested. The message says which directory, why, and
    what to do."""

    for_operator = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The identity of a data directory."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


Decoder = Callable[[bytes, str], MetaProperties]
"""Decodes the content of a file with this path. Raises StorageError."""


def encode(meta: MetaProperties) -> bytes:
    """Return the content of meta.properties."""
    values = {
        "cluster.id": meta.cluster_id,
        "directory.id": uuid_to_text(meta.directory_id),
        "node.id": str(meta.node_id),
        "version": VERSION,
    }
    return ("#\n" + properties.render(values)).encode()


def encode_copy(content: bytes) -> bytes:
    """Return the content of the copy: a line with the CRC-32C, then the content of the original."""
    return b"#crc32c=%08x\n" % crc32c(content) + content


def decode(content: bytes, path: str) -> MetaProperties:
    """Return the identity in a meta.properties. Raise StorageError, which names `path`."""
    try:
        entries = {each.name: each.value for each in properties.parse(content.decode(), path)}
    except (ConfigError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: {error}") from None
    if entries.get("version") != VERSION:
        raise StorageError(f"{path}: version {entries.get('version')!r} must be {VERSION}")
    try:
        return MetaProperties(
            cluster_id=entries["cluster.id"],
            node_id=bounded(entries["node.id"], MAX_NODE_ID),
            directory_id=uuid_from_text(entries["directory.id"]),
        )
    except KeyError as error:
        raise StorageError(f"{path}: {error.args[0]} is missing") from None
    except ValueError as error:
        raise StorageError(f"{path}: {error}") from None


def decode_copy(content: bytes, path: str) -> MetaProperties:
    """Return the identity in a copy. Raise StorageError if it is damaged or names no identity."""
    line, _, rest = content.partition(b"\n")
    if line != b"#crc32c=%08x" % crc32c(rest):
        raise StorageError(f"{path} is damaged: its checksum does not match its content")
    return decode(rest, path)


def read_meta(disk: Disk, log_dir: str, *, repair: bool = False) -> MetaProperties | None:
    """Return the identity of `log_dir`, or None if the directory is not formatted. Blocks.

    If `repair` and one of the two files is missing or damaged, write both from the valid one. Keys
    that Quorate does not know are lost then. Raise StorageError if a file exists and none is valid,
    or if both are valid and differ."""
    path, copy_path = f"{log_dir}/{META_FILE}", f"{log_dir}/{META_COPY}"
    content, copied = _read(disk, path), _read(disk, copy_path)
    if content is None and copied is None:
        return None
    primary, problem = attempt(content, path, decode)
    copy, copy_problem = attempt(copied, copy_path, decode_copy)
    if primary and copy and primary != copy:
        raise StorageError(
            f"{path} contains {describe(primary)}, but its copy {META_COPY} contains "
            f"{describe(copy)}: remove the file that is wrong"
        )
    if primary is None and copy is None:
        raise StorageError(f"{problem or copy_problem}. Restore it from a backup of this directory")
    meta = primary or copy
    assert meta is not None, "one of the two is valid"
    if repair and (primary is None or copy is None):
        damaged = path if primary is None else copy_path
        logger.warning("%s was missing or damaged: wrote it again from its other copy", damaged)
        write_meta(disk, log_dir, meta)
    return meta


def _read(disk: Disk, path: str) -> bytes | None:
    """Return the content, or bytes that are no meta.properties if the file is too large for one."""
    try:
        return read_small(disk, path, max_bytes=MAX_META_BYTES)
    except CorruptCheckpoint as error:
        return f"# {error}".encode()


def attempt(
    content: bytes | None, path: str, decoder: Decoder
) -> tuple[MetaProperties | None, str]:
    """Return the decoded identity and an empty string, or None and the problem. `content` is None
    if the file is missing."""
    if content is None:
        return None, f"{path} is missing"
    try:
        return decoder(content, path), ""
    except StorageError as error:
        return None, str(error)


def describe(meta: MetaProperties) -> str:
    """Return the identity for an error message."""
    return (
        f"cluster.id={meta.cluster_id} node.id={meta.node_id} "
        f"directory.id={uuid_to_text(meta.directory_id)}"
    )


def write_meta(disk: Disk, log_dir: str, meta: MetaProperties) -> None:
    """Write both files, durably. The copy is first, because meta.properties makes the directory a
    formatted one."""
    content = encode(meta)
    replace(disk, f"{log_dir}/{META_COPY}", encode_copy(content))
    replace(disk, f"{log_dir}/{META_FILE}", content)
