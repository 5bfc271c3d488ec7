"""The file with the progress of a run, which a thread of its own writes every PERIOD_S.

The thread keeps the disk out of the event loop, because a run measures latencies. The file is
replaced as a whole, and not flushed. If it cannot be written, the run goes on without it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from quorate.cli.chaos.results.progress import MAX_EVENTS, MAX_LINE_CHARS, Progress, clipped
from quorate.cli.nodes.cluster_dir import replace_file

PERIOD_S = 1.0


class ProgressFile:
    """The progress of the runs of one command, one after another, in one file.

    All methods run in the thread of the run. `say` reports why the file cannot be written, once."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._current: Progress | None = None
        self._events: deque[str] = deque(maxlen=MAX_EVENTS)
        self._failed = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, scenario: str, title: str) -> None:
        """Begin with a new run, and write until it ends."""
        self._current = Progress(scenario=scenario, title=title[:MAX_LINE_CHARS])
        self._events.clear()
        self._ended.clear()
        self._thread = threading.Thread(target=self._repeat, name="chaos-progress", daemon=True)
        self._thread.start()

    def event(self, line: str) -> None:
        """Add the line of an event."""
        self._events.append(line[:MAX_LINE_CHARS])
        self._change(events=tuple(self._events))

    def step(self, text: str) -> None:
        """Set the step that the run carries out."""
        self._change(step=text[:MAX_LINE_CHARS])

    def counts(self, ms: int, acknowledged: int, problems: Iterable[str]) -> None:
        """Set the time since the start, the acknowledged records and the problems so far."""
        self._change(ms=ms, acknowledged=acknowledged, problems=clipped(problems))

    def ended(self, state: str, ms: int, checks: Iterable[str]) -> None:
        """Write the verdict and the checks, and write no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._change(state=state, ms=ms, step="", checks=clipped(checks))
        self._write()

    def _change(self, **values: object) -> None:
        if self._current is not None:
            self._current = replace(self._current, **values)  # type: ignore[arg-type]

    def _repeat(self) -> None:
        while not self._ended.is_set():
            self._write()
            self._ended.wait(PERIOD_S)

    def _write(self) -> None:
        current = self._current
        if current is None or self._failed:
            return
        try:
            written = replace(current, written_wall_ms=time.time_ns() // 1_000_000)
            replace_file(self._path, written.as_text())
        except OSError as error:
            self._failed = True
            self._say(f"The progress cannot be written, and the run goes on: {error}")
