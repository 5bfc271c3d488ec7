"""The files of the tables that a stream keeps current, and the commit of a step.

A directory has one folder for each table, with Parquet files, and the file `_commit.json`, which
names the folders of the last step. A step writes new folders, and then replaces `_commit.json`. A
crash before the replacement leaves the tables of the step before. Folders that neither the new
commit nor the one before it names are removed.

When `commit` returns, the folders and the commit are on the disk.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quorate.quorum.analytics.log.errors import BadOption

COMMIT = "_commit.json"
CARRIED = "_carried"
"""The folder of the carried rows. Readers of Parquet ignore names that begin with `_`."""
LOCK = "_lock"
"""The file that is locked during a step."""
FAN = 8
"""The smallest number of folders that are merged."""


@dataclass(frozen=True, slots=True)
class Part:
    """One folder with rows of a table."""

    folder: str
    rows: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The folders of one table: those with final rows, oldest first, and that with open rows."""

    final: tuple[Part, ...] = ()
    open: tuple[Part, ...] = ()

    def parts(self) -> tuple[Part, ...]:
        """Return all folders."""
        return (*self.final, *self.open)


@dataclass(frozen=True, slots=True)
class Commit:
    """The tables after one step."""

    step: int = 0
    tables: dict[str, Contents] = field(default_factory=dict)
    carried: dict[str, str] = field(default_factory=dict)
    """The folders of carried rows, by table."""

    def folders(self) -> set[str]:
        """Return all folders that the commit names."""
        of_tables = (part.folder for each in self.tables.values() for part in each.parts())
        return {*of_tables, *self.carried.values()}


def committed(directory: Path) -> Commit:
    """Return the last commit, or an empty one. Raise BadOption if it cannot be read."""
    path = directory / COMMIT
    try:
        read = json.loads(path.read_bytes())
        tables = {
            name: Contents(_parts_of(each["final"]), _parts_of(each["open"]))
            for name, each in read["tables"].items()
        }
        return Commit(read["step"], tables, read["carried"])
    except FileNotFoundError:
        return Commit()
    except (ValueError, KeyError, TypeError) as error:
        raise BadOption(f"{path} is damaged ({error}): choose a new directory") from None


def _parts_of(read: list[dict[str, Any]]) -> tuple[Part, ...]:
    return tuple(Part(**part) for part in read)


@contextmanager
def one_step(directory: Path) -> Iterator[None]:
    """Wait until no other process makes a step in this directory, and keep others from it during
    the block. Two steps would write the same folders. Block."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def commit(directory: Path, new: Commit, before: Commit) -> None:
    """Make the step visible, and remove the folders of older steps. Block."""
    for folder in new.folders() - before.folders():
        _flush(directory / folder)
    path = directory / COMMIT
    written = path.with_suffix(".tmp")
    with written.open("w") as file:
        json.dump(asdict(new), file)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    _flush_directory(directory)
    _remove_others(directory, new.tables, new.folders() | before.folders())


def to_merge(rows: Sequence[int]) -> int:
    """Return how many of the newest folders, of which `rows` has the numbers of rows, the next step
    writes again as one folder.

    None of them has more than half of their rows, so a row is written again at most log2(rows)
    times. At least FAN folders are merged."""
    for count in range(len(rows), FAN - 1, -1):
        newest = rows[-count:]
        if 2 * max(newest) <= sum(newest):
            return count
    return 0


def _remove_others(directory: Path, tables: Iterable[str], named: set[str]) -> None:
    """Remove the folders of steps of these tables that `named` does not have.

    The user may have chosen a directory with other files, so nothing else is removed."""
    for step in [
        step for table in (*tables, CARRIED) for step in directory.glob(f"{table}/step=*")
    ]:
        for folder in [each for each in step.iterdir() if each.is_dir()]:
            if str(folder.relative_to(directory)) not in named:
                shutil.rmtree(folder)
        if not any(each.is_dir() for each in step.iterdir()):
            shutil.rmtree(step)


def _flush(folder: Path) -> None:
    for path in (folder, *_ancestors(folder)):
        _flush_directory(path)
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _ancestors(folder: Path) -> Iterable[Path]:
    """Return the folder of the step and that of the table."""
    return folder.parents[0], folder.parents[1]


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
