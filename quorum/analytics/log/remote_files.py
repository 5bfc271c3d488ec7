"""Filesystems that pyarrow or fsspec reads, as `Store`s. pyarrow is asked first."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import IO, Any, Protocol, cast

from quorate.quorum.analytics.log.errors import BadOption

WILDCARDS = frozenset("*?[")


class Store(Protocol):
    """One remote filesystem. Paths are without the scheme and the query."""

    def files(self, path: str) -> dict[str, int]:
        """Return the names and sizes of the files in a directory, empty if there is none."""
        ...

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a pattern with wildcards."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Return the file, which can seek."""
        ...

    def modified_ms(self, path: str) -> int | None:
        """Return the time of the last change of a file, in ms since 1970, or None."""
        ...


def store_for(root: str, query: str) -> Store:
    """Return the filesystem of a URL without a path. Raise BadOption if none can read it."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import fs
    except ImportError:
        raise BadOption(f"{root}: reading it needs `pip install 'quorate[spark]'`") from None
    try:
        # Some schemes need a path, which is the authority of the URL here.
        made, _ = fs.FileSystem.from_uri(root + "/" + query)
        return ArrowStore(made)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refused:
        reason = refused
    try:
        import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise BadOption(
            f"{root}: pyarrow cannot read it ({reason}). `pip install fsspec` and the package of "
            "this filesystem may"
        ) from None
    try:
        return FsspecStore(fsspec.core.url_to_fs(root + "/")[0])
    except (ValueError, ImportError) as error:
        raise BadOption(f"{root}: neither pyarrow nor fsspec can read it: {error}") from None


class ArrowStore:
    """A filesystem of pyarrow."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def files(self, path: str) -> dict[str, int]:
        """Return the names and sizes of the files in a directory, empty if there is none."""
        return {info.base_name: info.size for info in self._listed(path) if info.is_file}

    def _listed(self, path: str) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(path, allow_not_found=True)
        return list(self._filesystem.get_file_info(selector))

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a pattern. A wildcard does not match a slash."""
        fixed, *parts = _parted(pattern)
        found = [fixed]
        for part in parts:
            found = [
                info.path
                for each in found
                for info in self._listed(each)
                if fnmatchcase(info.base_name, part)
            ]
        return sorted(found)

    def open(self, path: str) -> IO[bytes]:
        """Return the file, which can seek."""
        return cast(IO[bytes], self._filesystem.open_input_file(path))

    def modified_ms(self, path: str) -> int | None:
        """Return the time of the last change of a file, in ms since 1970, or None."""
        (info,) = self._filesystem.get_file_info([path])
        return None if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000


class FsspecStore:
    """A filesystem of fsspec."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def files(self, path: str) -> dict[str, int]:
        """Return the names and sizes of the files in a directory, empty if there is none."""
        try:
            listed = self._filesystem.ls(path, detail=True, refresh=True)
        except FileNotFoundError:
            return {}
        return {
            info["name"].rstrip("/").rpartition("/")[2]: info["size"]
            for info in listed
            if info["type"] == "file"
        }

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a pattern."""
        return sorted(each.lstrip("/") for each in self._filesystem.glob(pattern))

    def open(self, path: str) -> IO[bytes]:
        """Return the file, which can seek."""
        return cast(IO[bytes], self._filesystem.open(path, "rb"))

    def modified_ms(self, path: str) -> int | None:
        """Return the time of the last change of a file, in ms since 1970, or None."""
        try:
            modified: datetime = self._filesystem.modified(path)
        except NotImplementedError:
            return None
        zoned = modified if modified.tzinfo else modified.replace(tzinfo=UTC)
        return int(zoned.timestamp() * 1000)


def _parted(pattern: str) -> list[str]:
    """Return the directory before the first wildcard, and each later part of the pattern."""
    parts = pattern.split("/")
    fixed = next(at for at, part in enumerate(parts) if WILDCARDS & set(part))
    return ["/".join(parts[:fixed]), *parts[fixed:]]
