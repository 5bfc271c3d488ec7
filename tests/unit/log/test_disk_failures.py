"""The text about a failed disk call names its file, its partition, and the remedy."""

from __future__ import annotations

import errno
import os

import pytest

from quorate.quorum.log.disks.disk_failures import explained


def failed(number: int, path: str | None) -> OSError:
    """Return the error of a disk call."""
    return OSError(number, os.strerror(number), path)


AGAIN = "Then start the node again."
FULL = f"No space left on device. Free space on this disk, or add space to it. {AGAIN}"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            failed(errno.ENOSPC, "/data/k4/my-topic-7/00000000000000000000.log"),
            f"/data/k4/my-topic-7/00000000000000000000.log (topic my-topic, partition 7): {FULL}",
        ),
        (
            failed(errno.EIO, "/d/__cluster_metadata-0"),
            (
                "/d/__cluster_metadata-0 (topic __cluster_metadata, partition 0): Input/output "
                f"error. Check the disk, and replace it if it is faulty. {AGAIN}"
            ),
        ),
        (
            failed(errno.ENOSPC, "/data/recovery-point-offset-checkpoint"),
            f"/data/recovery-point-offset-checkpoint: {FULL}",
        ),
        (failed(errno.ELOOP, "/a"), "/a: Too many levels of symbolic links."),
        (failed(errno.EADDRINUSE, None), "[Errno 98] Address already in use"),
        (ValueError("no disk"), "no disk"),
    ],
)
def test_the_text(error: BaseException, text: str) -> None:
    assert explained(error) == text
