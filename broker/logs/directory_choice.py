"""The rules that choose the log directory of a partition, and that decide which one has failed.

Placement (KIP-113, KIP-858), for a partition without a log on this broker:

1. the directory that the metadata names, if it is online;
2. the online directory with the fewest logs. Sizes do not count.

If a directory is offline and the metadata names one that is not online, the log may be in there. No
second log is made then, and the partition is offline on this broker (KAFKA-16234). A partition
without a named directory is a new one, unless the first image has it: the broker may have stopped
before it reported the directory (`replica_placement.py`).

Failure: an error of the disk takes the directory of its file offline. The node stops if the error
does not name a file below a log directory, if it is the metadata directory that failed, or if no
other log directory is online. Errors of the process, such as too many open files, are not failures
of a directory.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from quorate.quorum.directory_ids import UNASSIGNED
from quorate.quorum.ids import Uuid

OF_THE_PROCESS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""The errors of an OSError for which no directory is at fault."""


class Candidate(NamedTuple):
    """An online log directory: its path, its id, and the number of its logs."""

    path: str
    directory_id: Uuid | None
    logs: int


def chosen_directory(
    candidates: Sequence[Candidate],
    assigned: Uuid,
    *,
    any_offline: bool = False,
    may_exist: bool = False,
) -> str | None:
    """Return the path of the directory for a new log, or None if the log may be in a directory that
    is offline. `may_exist` is True if there may be a log although no directory is assigned.
    `candidates` is not empty."""
    for each in candidates:
        if each.directory_id == assigned:
            return each.path
    if any_offline and (assigned != UNASSIGNED or may_exist):
        return None
    return with_fewest_logs(candidates).path


def with_fewest_logs(candidates: Sequence[Candidate]) -> Candidate:
    """Return the directory with the fewest logs, the first one of several. `candidates` is not
    empty."""
    return min(candidates, key=lambda each: each.logs)


def directory_of(path: str, directories: Iterable[str]) -> str | None:
    """Return the one of `directories` that holds `path`, the innermost one, or None."""
    holders = [each for each in directories if path == each or path.startswith(f"{each}/")]
    return max(holders, key=len, default=None)


def failed_directory(
    error: BaseException,
    log_dirs: Collection[str],
    online: Collection[str],
    metadata_dir: str,
) -> str | None:
    """Return the log directory that `error` takes offline, or that is offline already. Return None
    if the node must stop."""
    if not isinstance(error, OSError) or error.errno in OF_THE_PROCESS:
        return None
    if not isinstance(error.filename, str):
        return None
    directory = directory_of(error.filename, {*log_dirs, metadata_dir})
    if directory is None or directory == metadata_dir:
        return None
    if directory in online and len(online) == 1:
        return None
    return directory
