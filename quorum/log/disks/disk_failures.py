"""The text about a failed disk call: the file, its partition, and the remedy. Pure."""

from __future__ import annotations

import errno
from pathlib import PurePosixPath

from quorate.quorum.log.files.names import partition_of

FULL = "Free space on this disk, or add space to it. Then start the node again."
REMEDIES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: "Raise the quota of the node's user. Then start the node again.",
    errno.EIO: "Check the disk, and replace it if it is faulty. Then start the node again.",
    errno.EROFS: "Check the disk, and mount it with write access. Then start the node again.",
    errno.EACCES: "Give the node's user read and write access. Then start the node again.",
    errno.EPERM: "Give the node's user read and write access. Then start the node again.",
}
"""The remedy by the number of the error."""


def explained(error: BaseException) -> str:
    """Return the error as text. For a failed disk call, also name the topic and the remedy.

    An error without a file, such as that of a network call, keeps its text."""
    path = error.filename if isinstance(error, OSError) else None
    if not isinstance(error, OSError) or not isinstance(path, str):
        return str(error)
    partition = next(filter(None, map(partition_of, PurePosixPath(path).parts[::-1])), None)
    of = "" if partition is None else f" (topic {partition.topic}, partition {partition.partition})"
    remedy = REMEDIES.get(error.errno or 0, "")
    return f"{path}{of}: {error.strerror}. {remedy}".rstrip()
