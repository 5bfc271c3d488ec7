"""The source of a history: a node's directory, a local cluster's, Kafka's, or an archive of one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from quorate.cli.archives import unpack
from quorate.cli.client.errors import Refused
from quorate.cli.cluster_dir import read_cluster
from quorate.quorum.analytics.log.errors import AnalyticsError
from quorate.quorum.analytics.log.seek import last_batch
from quorate.quorum.analytics.log.segments import PARTITION_DIR, metadata_dir
from quorate.quorum.log.errors import LogError
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.protocol.varint import DecodeError

directory_argument = click.argument(
    "directory", metavar="DIR", type=click.Path(exists=True, path_type=Path)
)
ARCHIVES = tuple(chain.from_iterable(suffixes for _, suffixes, _ in shutil.get_unpack_formats()))
"""The ends of the names of archives, such as .tar.gz and .zip."""


@contextmanager
def history_in(given: Path) -> Iterator[Path]:
    """Yield the directory with the metadata log that DIR names (see `longest_log`).

    An archive is extracted into a temporary directory, which is removed at the end of the block.
    Raise Refused if DIR cannot be used, and in place of an OSError of the block or of an error
    about its log: a damaged batch or record, or one of a newer version."""
    try:
        if given.is_dir():
            yield longest_log(given)
            return
        if not given.name.endswith(ARCHIVES):
            known = ", ".join(ARCHIVES)
            raise Refused(f"{given} is neither a directory nor an archive ({known})")
        with TemporaryDirectory(prefix="quorate-history-") as unpacked:
            unpack(given, Path(unpacked))
            yield longest_log(_root(Path(unpacked)), within=Path(unpacked))
    except (OSError, AnalyticsError, shutil.ReadError) as error:
        raise Refused(str(error)) from None
    except (LogError, MetadataError, DecodeError) as error:
        raise Refused(f"the metadata log in {given} cannot be read to the end: {error}") from None


def _root(unpacked: Path) -> Path:
    """Return the root of the extracted files.

    An archive may hold the directory or only its content."""
    for found in sorted(unpacked.rglob("cluster.json")):
        return found.parent
    for found in sorted(unpacked.rglob("*.log")):
        if found.stem.isdecimal() and found.parent.name in (PARTITION_DIR, unpacked.name):
            return found.parent
    return unpacked


def longest_log(directory: Path, *, within: Path | None = None) -> Path:
    """Return the node directory of a local cluster whose metadata log is the best to read.

    If a majority of the controllers have a log, the result is one with every committed record, and
    not necessarily the longest one. Otherwise it is the most up-to-date log of all nodes. If
    `directory` is no local cluster, return it. With `within`, the directory of an extracted
    archive, nothing outside of it is read. Raise Refused if no node has a metadata log."""
    file = directory / "cluster.json"
    if not file.exists():
        return directory
    entry = read_cluster(file)
    controllers, brokers = (
        [
            place
            for node in nodes
            if (place := _place(directory, node["log_dir"], within)) is not None
        ]
        for nodes in (entry["controllers"], entry["brokers"])
    )
    voters = _longest_first(controllers)
    majority = len(entry["controllers"]) // 2 + 1
    if len(voters) >= majority:
        # A committed record is on a majority of the voters. By Raft's election rule, the log at
        # this place of the order therefore has every committed record (leader completeness, Raft,
        # section 5.4.3).
        return voters[majority - 1]
    others = _longest_first([*voters, *brokers])
    if not others:
        raise Refused(f"{directory}: no node of this cluster has a metadata log yet")
    return others[0]


def _place(root: Path, log_dir: str, within: Path | None) -> Path | None:
    """Return the directory where the log was written, or the same place below a moved directory.

    For an archive return only the latter, or None if it is outside of the archive."""
    written = Path(log_dir)
    if within is None and written.is_dir():
        return written
    parts = written.parts
    below = parts[parts.index("nodes") :] if "nodes" in parts else parts[-1:]
    place = root.joinpath(*below)
    if within is not None and not place.resolve().is_relative_to(within.resolve()):
        return None
    return place


def _longest_first(nodes: list[Path]) -> list[Path]:
    held = [node for node in nodes if (node / PARTITION_DIR).is_dir()]
    return sorted(held, key=log_end, reverse=True)


def log_end(node: Path) -> tuple[int, int]:
    """Return the epoch and the last offset of a node's log, or (-1, -1) if it is empty.

    Such pairs compare as Raft compares logs.

    The log with the later epoch is more up to date, whatever its length (Raft, section 5.4.1)."""
    last = last_batch(metadata_dir(str(node)))
    return (-1, -1) if last is None else (last.leader_epoch, last.last_offset)
