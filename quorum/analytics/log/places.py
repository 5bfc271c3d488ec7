"""The metadata logs at the locations that a user names.

A location is one of these, local or a URL (`files.py`), and may contain wildcards:

- a node's log directory, or the directory of its metadata log;
- the directory of a cluster of `quorate up`, which stands for all its nodes;
- a local archive of such a directory (`archives/`).

If a cluster has several logs, one is read (`commits.py`). On request all logs are read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from quorate.config import properties
from quorate.config.key import ConfigError
from quorate.quorum.analytics.archives.extracted import SUFFIXES, extracted, root_of
from quorate.quorum.analytics.log.errors import BadOption, NoMetadataLog
from quorate.quorum.analytics.log.files import (
    absolute,
    below,
    expanded,
    local_path,
    name_of,
    parent_of,
    read_small,
)
from quorate.quorum.analytics.log.segments import (
    PARTITION_DIR,
    Committed,
    Origin,
    no_log_in,
    partition_dir,
)

CLUSTER_FILE, META_FILE = "cluster.json", "meta.properties"
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeLog:
    """The metadata log of one node: its directory, its cluster and node, and what is committed.

    `is_chosen` is True if it is the log that is read for its cluster."""

    directory: str
    origin: Origin
    committed: Committed = Committed()
    is_chosen: bool = False


def logs_at(locations: Sequence[str]) -> list[NodeLog]:
    """Return all logs at the locations. Block.

    Two names of one directory count once. Raise NoMetadataLog if a location holds no log, and
    BadOption if there is no location, a pattern matches nothing, or an archive is refused."""
    if not locations:
        raise BadOption("load() needs a directory or a list of directories")
    found: dict[str, NodeLog] = {}
    for location in locations:
        for each in expanded(location):
            for directory in _directories(each):
                found.setdefault(directory, NodeLog(directory, origin_of(directory)))
    return list(found.values())


def _directories(location: str) -> list[str]:
    """Return the paths of all metadata logs at one location without wildcards."""
    if name_of(location).endswith(SUFFIXES):
        unpacked = _extracted(location)
        return _directories_below(str(root_of(unpacked)), within=unpacked)
    return _directories_below(location)


def _extracted(location: str) -> Path:
    """Return the directory with the files of an archive. Raise BadOption if it is refused."""
    path = local_path(location)
    if path is None:
        raise BadOption(
            f"{location} is an archive on another filesystem, and only local archives are "
            "extracted: copy it to this machine and load the copy, or extract it there and load "
            "the URL of the directory"
        )
    try:
        return extracted(Path(path))
    except OSError as error:  # shutil.ReadError and ArchiveTooLarge are OSErrors.
        raise BadOption(f"{error}") from None


def _directories_below(location: str, within: Path | None = None) -> list[str]:
    """Return the paths of all metadata logs in a directory.

    With `within`, the directory of an extracted archive, nothing outside of it is read."""
    found = partition_dir(absolute(location))
    if found is not None:
        return [found]
    nodes = cluster_nodes(location, within)
    if nodes is None:
        raise NoMetadataLog(no_log_in(location))
    held = [directory for node in nodes if (directory := partition_dir(node)) is not None]
    if not held:
        raise NoMetadataLog(f"{location}: no node of this cluster has a metadata log yet")
    return held


def cluster_nodes(location: str, within: Path | None = None) -> list[str] | None:
    """Return the log directories of the nodes in a cluster.json, or None if there is no such file.

    A directory that is gone is searched in the same place below `location`, because the cluster's
    directory may have been moved. With `within`, directories outside of it are left out. Raise
    NoMetadataLog if the file cannot be read."""
    content = read_small(below(location, CLUSTER_FILE), MAX_FILE_BYTES)
    if content is None:
        return None
    try:
        entry = json.loads(content)
        nodes = [str(node["log_dir"]) for node in (*entry["controllers"], *entry["brokers"])]
        if within is not None:
            places = [Path(location, moved(node)).resolve() for node in nodes]
            return [str(place) for place in places if place.is_relative_to(within.resolve())]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoMetadataLog(f"{location}: its {CLUSTER_FILE} cannot be read: {error}") from None
    is_local = local_path(location) is not None
    return [
        node if is_local and Path(node).is_dir() else below(absolute(location), moved(node))
        for node in nodes
    ]


def moved(log_dir: str) -> str:
    """Return the place of a node's log directory below a cluster's directory that was moved."""
    parts = PurePosixPath(log_dir).parts
    return "/".join(parts[parts.index("nodes") :] if "nodes" in parts else parts[-1:])


def origin_of(directory: str) -> Origin:
    """Return the cluster and the node that meta.properties names, in or above the directory."""
    places = [directory]
    if name_of(directory) == PARTITION_DIR:
        places.append(parent_of(directory))
    for place in places:
        content = read_small(below(place, META_FILE), MAX_FILE_BYTES)
        if content is not None and (origin := _origin_in(content)) is not None:
            return origin
    return Origin(directory, None)


def _origin_in(content: bytes) -> Origin | None:
    try:
        named = {each.name: each.value for each in properties.parse(content.decode(), META_FILE)}
        return Origin(named["cluster.id"], int(named["node.id"]))
    except (ConfigError, UnicodeDecodeError, KeyError, ValueError):
        return None


def by_cluster(logs: Iterable[NodeLog]) -> list[list[NodeLog]]:
    """Return the logs of each cluster."""
    clusters: defaultdict[str, list[NodeLog]] = defaultdict(list)
    for log in logs:
        clusters[log.origin.cluster_id].append(log)
    return list(clusters.values())
