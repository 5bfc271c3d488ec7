"""The files of `quorate chaos run`: the page, JSON and JUnit XML.

They are tried before a run, because a run takes minutes and a wrong path would lose its result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from quorate.cli.chaos.results.outcome import Outcome, results_of


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The requested files. `of_all` is True for a run of all scenarios, whose JSON is a list."""

    html: Path | None
    json_file: Path | None
    junit_file: Path | None
    of_all: bool

    def refuse_unwritable(self) -> None:
        """Raise UsageError if a file cannot be written, or if two options name the same one.

        Missing directories are created. A file that exists keeps its content."""
        seen: dict[Path, str] = {}
        for option, path, _ in self._wanted():
            other = seen.setdefault(path.absolute(), option)
            if other != option:
                raise click.UsageError(f"{other} and {option} name the same file: {path}")
            try:
                try_to_write(path)
            except OSError as error:
                raise click.UsageError(f"{option}: {unwritable(path, error)}") from None

    def write(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Write all files. Return the reasons for those that cannot be written."""
        failed = []
        for option, path, text in self._wanted():
            try:
                path.write_text(text(outcomes), encoding="utf-8")
            except OSError as error:
                failed.append(f"{option}: {unwritable(path, error)}")
        return failed

    def write_so_far(self, outcomes: Sequence[Outcome]) -> None:
        """Write the outcomes of a run of all scenarios that has not ended, if the files are on a
        disk. Thus a run that is killed leaves the verdicts so far."""
        if all(path.is_file() or not path.exists() for _, path, _ in self._wanted()):
            self.write(outcomes)

    def text(self, outcomes: Sequence[Outcome]) -> str:
        """Return the outcomes as JSON."""
        found = [each.as_json() for each in outcomes]
        return json.dumps(found if self.of_all else found[0])

    def _wanted(self) -> Iterator[tuple[str, Path, Callable[[Sequence[Outcome]], str]]]:
        """Yield the option, the path and the content of each requested file."""
        from quorate.cli.chaos.results.junit import junit
        from quorate.cli.chaos.results.page import render

        wanted: tuple[tuple[str, Path | None, Callable[[Sequence[Outcome]], str]], ...] = (
            ("--html", self.html, lambda outcomes: render(results_of(outcomes)[0])),
            ("--json", self.json_file, lambda outcomes: self.text(outcomes) + "\n"),
            ("--junit", self.junit_file, junit),
        )
        for option, path, text in wanted:
            if path is not None:
                yield option, path, text


def try_to_write(path: Path) -> None:
    """Raise OSError if the file cannot be written. Create its directory, and leave no new file.

    A pipe is not opened, because that waits for its reader."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exists = path.exists()
    if exists and not path.is_file():
        if not os.access(path, os.W_OK):
            raise PermissionError(None, "Permission denied")
        return
    with open(path, "ab"):
        pass
    if not exists:
        path.unlink()


def unwritable(path: Path, error: OSError) -> str:
    """Return the text about a file that cannot be written."""
    if isinstance(error, FileExistsError):  # of the creation of its directory
        return f"{path} cannot be written: {path.parent} is no directory"
    return f"{path} cannot be written: {error.strerror or error}"
