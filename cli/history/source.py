"""The source of a history: a node's directory, a local cluster's, Kafka's, or an archive of one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import read_cluster
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.quorum.analytics.archives.extracted import root_of
from quorate.quorum.analytics.archives.unpacking import unpack
from quorate.quorum.analytics.log.agreement import complete
from quorate.quorum.analytics.log.errors import AnalyticsError
from quorate.quorum.analytics.log.places import moved
from quorate.quorum.analytics.log.seek import rank_of
from quorate.quorum.analytics.log.segments import PARTITION_DIR
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.protocol.varint import DecodeError

DIRECTORY_OF_A_LOG = (
    "The metadata log: the directory of `quorate up`, a node's log directory, its directory "
    "__cluster_metadata-0, or an archive of one of them."
)
directory_argument = click.argument(
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, path_type=Path),
    cls=DescribedArgument,
    description=DIRECTORY_OF_A_LOG,
)
ARCHIVES = tuple(chain.from_iterable(suffixes for _, suffixes, _ in shutil.get_unpack_formats()))
"""The ends of the names of archives, such as .tar.gz and .zip."""


@contextmanager
def history_in(given: Path, *, all_nodes: bool = False) -> Iterator[Path]:
    """Yield the directory with the metadata log that DIR names (see `longest_log`).

    If `all_nodes` is true and DIR is a local cluster's directory, yield DIR itself, for readers
    that compare the logs of its nodes.

    An archive is extracted into a temporary directory, which is removed at the end of the block.
    Raise Refused if DIR cannot be used, and in place of an OSError of the block or of an error
    about its log: a damaged batch or record, or one of a newer version."""
    try:
        if given.is_dir():
            yield given if all_nodes else longest_log(given)
            return
        if not given.name.endswith(ARCHIVES):
            known = ", ".join(ARCHIVES)
            raise Refused(f"{given} is neither a directory nor an archive ({known})")
        with TemporaryDirectory(prefix="quorate-history-") as unpacked:
            unpack(given, Path(unpacked))
            yield longest_log(root_of(Path(unpacked)), within=Path(unpacked))
    except BrokenPipeError:
        raise  # the reader of the output has ended, as `head` does
    except (OSError, AnalyticsError, shutil.ReadError) as error:
        raise Refused(str(error)) from None
    except (LogError, MetadataError, DecodeError) as error:
        raise Refused(f"the metadata log in {given} cannot be read to the end: {error}") from None


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
    voters = _with_a_log(controllers)
    if len(voters) > len(entry["controllers"]) // 2:
        ranks = [rank_of(node / PARTITION_DIR) for node in voters]
        return voters[complete(ranks, len(entry["controllers"]))]
    others = _with_a_log([*voters, *brokers])
    if not others:
        raise Refused(f"{directory}: no node of this cluster has a metadata log yet")
    return max(others, key=lambda node: rank_of(node / PARTITION_DIR))


def _place(root: Path, log_dir: str, within: Path | None) -> Path | None:
    """Return the directory where the log was written, or the same place below a moved directory.

    For an archive return only the latter, or None if it is outside of the archive."""
    written = Path(log_dir)
    if within is None and written.is_dir():
        return written
    place = root / moved(log_dir)
    try:
        outside = within is not None and not place.resolve().is_relative_to(within.resolve())
    except ValueError:  # no name of a file, such as one with a NUL
        return None
    return None if outside else place


def _with_a_log(nodes: list[Path]) -> list[Path]:
    return [node for node in nodes if (node / PARTITION_DIR).is_dir()]
