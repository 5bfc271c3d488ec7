"""The warning of a broker that starts without logs that the metadata assigns to it.

Its disk may have been replaced or wiped. The broker copies these partitions from their leaders.
Records of a partition without another replica are gone. If a log directory is offline, the logs may
be there, and the broker copies none of those (`replica_placement.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.metadata.image import Partition

NAMED = 5
"""The number of partitions that the warning names."""


def missing_logs_warning(
    missing: Sequence[tuple[PartitionName, Partition]],
    assigned: int,
    broker_id: int,
    offline: Sequence[str] = (),
) -> str | None:
    """Return the warning, or None if nothing is missing. `missing` are those of the `assigned`
    partitions of this broker that had no log when it started, with their states in the image.
    `offline` are the paths of the log directories that are offline."""
    if not missing:
        return None
    gone = [name for name, value in missing if value.replicas == (broker_id,)]
    if offline:
        return _warning_of_offline(missing, assigned, gone, offline)
    whole = len(missing) == assigned
    what = (
        f"none of the {assigned} partitions that the metadata assigns to this broker has a log on "
        "its disks: they are empty, because they are new, were wiped, or are not mounted"
        if whole
        else f"{len(missing)} of the {assigned} partitions that the metadata assigns to this "
        f"broker have no log on its disks: {_named([name for name, _ in missing])}. A disk was "
        "replaced or wiped, or the partitions were created while the broker was away"
    )
    copied = len(missing) - len(gone)
    parts = [what]
    if copied:
        parts.append(f"The broker copies {copied} of them from their leaders")
    if gone:
        parts.append(
            f"{len(gone)} of them have no other replica (RF 1), so their records are gone unless "
            f"you stop this broker now and restore its disk: {_named(gone)}"
        )
    return ". ".join(parts)


def _warning_of_offline(
    missing: Sequence[tuple[PartitionName, Partition]],
    assigned: int,
    gone: Sequence[PartitionName],
    offline: Sequence[str],
) -> str:
    what = (
        f"{len(missing)} of the {assigned} partitions that the metadata assigns to this broker "
        f"have no log in its online log directories: {_named([name for name, _ in missing])}"
    )
    where = (
        f"Offline is {' and '.join(offline)}. A partition whose log may be there stays offline on "
        "this broker until it is restarted with that directory. The broker copies the others from "
        "their leaders"
    )
    parts = [what, where]
    if gone:
        parts.append(
            f"{len(gone)} of them have no other replica (RF 1), so their records are in such a "
            f"directory or gone: {_named(gone)}"
        )
    return ". ".join(parts)


def _named(names: Sequence[PartitionName]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(str, names[:NAMED])) + more
