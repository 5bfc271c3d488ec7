"""Files and directories to which no other user has access, and the error about them."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE, PUBLIC = 0o600, 0o644
DIRECTORY = 0o700


class SecurityFileError(Exception):
    """A file with a key, a certificate or a password cannot be read, written or used."""


def write(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file atomically with these permissions. It is durable on return. Blocks.

    Missing directories are created for the owner only. Raise SecurityFileError if it fails. A call
    that did not end leaves at most one file, which the next call removes."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        make_dirs(path.parent)
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # whatever the umask
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        sync(path.parent)
    except OSError as error:
        raise SecurityFileError(f"{path}: {error}") from None


def make_dirs(path: Path) -> None:
    """Create a directory and its missing parents for the owner only, durably. Raise OSError."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(DIRECTORY)
        sync(each.parent)


def sync(directory: Path) -> None:
    """Make the names in a directory durable. Raise OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
