"""Safe extraction of an archive from an untrusted source: a .tar.gz or .zip of a node's directory.

Only plain files and directories are extracted, and only below the given directory. Links, devices
and names that lead elsewhere or are too long are skipped without an error. The size of each member
is checked before the first byte of it is written. A compressed stream is expanded in steps. Thus no
archive exceeds the memory of one step or the limits below. An archive with more members or bytes
than allowed is refused."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import IO, cast
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from quorate.quorum.analytics.archives.decompression import (
    MAX_READ_BYTES,
    DecompressedStream,
    StreamTooLarge,
)
from quorate.quorum.log.disks.disk import DIRECTORY_MODE
from quorate.quorum.log.disks.os_file import FILE_MODE

MAX_MEMBERS = 65_000
MAX_MEMBER_BYTES = 4 << 30
"""The largest member, unpacked. Log segments are smaller."""
MAX_UNPACKED_BYTES = 16 << 30
MAX_RATIO = 200
"""The most unpacked bytes per byte of the archive, beyond the first FREE_BYTES."""
FREE_BYTES = 256 << 20
"""Unpacked bytes below which MAX_RATIO does not apply, because indexes hold megabytes of zeros."""
MAX_NAME_BYTES = 1024
"""A member with a longer name is skipped, as is one with more than MAX_NAME_PARTS parts."""
MAX_NAME_PARTS = 32
MAX_ZIP_DIRECTORY_BYTES = 64 << 20
"""The largest central directory of a .zip, which is held in memory."""
COPY_BYTES = 1 << 20

# signature, members on this disk and in total, size and place of the directory
_ZIP_END = struct.Struct("<4s4xHH2L2x")
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_ZIP_METHODS = (ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2)
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_DAMAGED = (
    tarfile.TarError,
    BadZipFile,
    zlib.error,
    LZMAError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    OverflowError,
    IndexError,  # raised by zipfile for a member without a name
    struct.error,
)


class _BoundedHeader(tarfile.TarInfo):
    """The header of one member, whose extended header tarfile takes into memory whole."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        """Read what follows the header; tarfile.py names this method as the one to override. Raise
        StreamTooLarge before a large extended header is read."""
        if self.type in _EXTENDED and self.size > MAX_READ_BYTES:
            raise StreamTooLarge(
                f"one of its headers has {self.size} bytes, more than {MAX_READ_BYTES}. Unpack "
                "it yourself if you trust it, and give the directory"
            )
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return member


class ArchiveTooLarge(shutil.ReadError):
    """The archive exceeds a limit. Nothing beyond the limit was written."""


@dataclass(slots=True)
class ExtractionLimits:
    """The members and bytes that one archive has used, and the limits on them."""

    archive: Path
    size_bytes: int
    members: int = 0
    unpacked_bytes: int = 0

    def count(self, name: str, size_bytes: int) -> None:
        """Count one member before it is written or skipped.

        Raise ArchiveTooLarge if the member or the sum so far exceeds a limit."""
        self.members += 1
        self.unpacked_bytes += max(0, size_bytes)
        allowed = max(FREE_BYTES, MAX_RATIO * self.size_bytes)
        if self.members > MAX_MEMBERS:
            self._refuse(f"it has more than {MAX_MEMBERS} members")
        if size_bytes > MAX_MEMBER_BYTES:
            self._refuse(f"{name!r} has {size_bytes} bytes, more than {MAX_MEMBER_BYTES}")
        if self.unpacked_bytes > MAX_UNPACKED_BYTES:
            self._refuse(f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
        if self.unpacked_bytes > allowed:
            self._refuse(
                f"{self.size_bytes} bytes unpack to more than {allowed}, which is more than "
                f"{MAX_RATIO} for one"
            )

    def _refuse(self, why: str) -> None:
        raise ArchiveTooLarge(
            f"{self.archive} is refused: {why}. Unpack it yourself if you trust it, and give the "
            "directory"
        )


def unpack(archive: Path, directory: Path) -> None:
    """Extract `archive` below `directory`, and replace files that exist there.

    A name that ends in .zip means a ZIP archive. Any other file must be a tar archive, which may be
    compressed with gzip, bzip2 or xz. Raise ArchiveTooLarge if it exceeds a limit, shutil.ReadError
    if it is damaged, and OSError if a file cannot be read or written. The files extracted before an
    error remain."""
    limits = ExtractionLimits(archive, archive.stat().st_size)
    root = directory.resolve()
    try:
        with open(archive, "rb") as file:
            if archive.suffix == ".zip":
                _unpack_zip(file, root, limits)
            else:
                _unpack_tar(file, root, limits)
    except StreamTooLarge as error:
        raise ArchiveTooLarge(f"{archive} is refused: {error}") from error
    except _DAMAGED as error:
        raise shutil.ReadError(f"{archive} is damaged: {error}") from error


def _unpack_tar(file: IO[bytes], root: Path, limits: ExtractionLimits) -> None:
    stream = DecompressedStream(file, MAX_UNPACKED_BYTES + COPY_BYTES)
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:", tarinfo=_BoundedHeader) as tar:
        for member in tar:
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile would keep them all
            limits.count(member.name, member.size if member.isfile() else 0)
            target = _target(root, member.name)
            if target is None:
                continue
            if member.isdir():
                _make_dirs(target)
            elif member.isfile() and (content := tar.extractfile(member)) is not None:
                with content:
                    _write(content, target, member.size)


def _unpack_zip(file: IO[bytes], root: Path, limits: ExtractionLimits) -> None:
    _require_small_directory(file, limits)
    with ZipFile(file) as archive:
        for member in archive.infolist():
            limits.count(member.filename, member.file_size)
            target = _target(root, member.filename)
            if target is None or not _is_plain(member):
                continue
            if member.is_dir():
                _make_dirs(target)
                continue
            if member.compress_type not in _ZIP_METHODS:
                raise BadZipFile(
                    f"{member.filename!r} has the unsupported compression method "
                    f"{member.compress_type}"
                )
            with archive.open(member) as content:
                _write(content, target, member.file_size)


def _require_small_directory(file: IO[bytes], limits: ExtractionLimits) -> None:
    """Raise ArchiveTooLarge if the archive's directory is large.

    The check is needed because the zip module reads the whole directory into memory."""
    size = file.seek(0, os.SEEK_END)
    tail_bytes = min(size, 0xFFFF + _ZIP_END.size + _ZIP64_LOCATOR_BYTES)
    file.seek(size - tail_bytes)
    tail = file.read(tail_bytes)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or place + _ZIP_END.size > len(tail):
        raise BadZipFile("it has no central directory")
    _, _, members, directory_bytes, _ = _ZIP_END.unpack_from(tail, place)
    is_zip64 = tail[max(0, place - _ZIP64_LOCATOR_BYTES) :].startswith(_ZIP64_LOCATOR)
    if is_zip64 or members > MAX_MEMBERS or directory_bytes > MAX_ZIP_DIRECTORY_BYTES:
        raise ArchiveTooLarge(
            f"{limits.archive} is refused: its directory announces more than {MAX_MEMBERS} "
            "members or 4 GiB. Unpack it yourself if you trust it, and give the directory"
        )
    file.seek(0)


def _is_plain(member: ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return kind in (0, stat.S_IFREG, stat.S_IFDIR)


def _target(root: Path, name: str) -> Path | None:
    """Return the path of a member, or None if the member must be skipped."""
    parts = name.split("/")
    if (
        len(os.fsencode(name)) > MAX_NAME_BYTES
        or len(parts) > MAX_NAME_PARTS
        or "\0" in name
        or name.startswith("/")
        or ".." in parts
    ):
        return None
    target = (root / name).resolve()
    return target if target.is_relative_to(root) else None


def _make_dirs(path: Path) -> None:
    for each in reversed((path, *path.parents)):
        if not each.is_dir():
            each.mkdir(DIRECTORY_MODE)


def _write(content: IO[bytes], target: Path, size_bytes: int) -> None:
    """Write the content, which must not exceed the `size_bytes` counted before.

    Raise ValueError if it does."""
    _make_dirs(target.parent)
    written = 0
    with open(target, "wb", opener=_private) as file:
        for chunk in _chunks(content):
            written += len(chunk)
            if written > size_bytes:
                raise ValueError(
                    f"{target.name!r} is longer than the {size_bytes} bytes in its header"
                )
            file.write(chunk)


def _private(path: str, flags: int) -> int:
    """Open a file that group and others cannot read."""
    return os.open(path, flags, FILE_MODE)


def _chunks(content: IO[bytes]) -> Iterator[bytes]:
    while chunk := content.read(COPY_BYTES):
        yield chunk
