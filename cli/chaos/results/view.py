"""The progress of a run on a terminal: one line per event, and a status line that is redrawn.

A ProgressFile gets the same, for `quorate console`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from quorate.cli.chaos.results.progress_file import ProgressFile
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.timeline.timeline import Event
from quorate.cli.chaos.workload.latencies import lines
from quorate.cli.chaos.workload.ledger import Ledger
from quorate.cli.terminal.safe_text import safe_text

STATUS_PERIOD_S = 0.2
CLEAR_LINE = "\r\x1b[K"
MAX_WAITING_SHOWN = 6
WAITING_S = 0.2
"""A partition without an acknowledgement for this long is shown as waiting."""


@dataclass(slots=True)
class View:
    """The output of a run. `out` gets the events (None: no output), `terminal` the status line.

    `file` also gets both, and the verdict."""

    out: TextIO | None
    terminal: TextIO = sys.stderr
    file: ProgressFile | None = None
    _redrawn: bool = False
    _gone: bool = False
    _last: tuple[float, int] = field(default_factory=lambda: (time.monotonic(), 0))

    def begin(self, scenario: str, title: str) -> None:
        """Note that a run begins."""
        if self.file is not None:
            self.file.begin(scenario, title)

    def step(self, text: str) -> None:
        """Note what the run carries out now."""
        if self.file is not None:
            self.file.step(text)

    def end(self, result: Result) -> None:
        """Print the verdict."""
        for line in verdict_lines(result):
            self.line(line)
        if self.file is not None:
            bad_first = sorted(result.checks, key=lambda each: each.good)
            lines = [f"{'ok' if each.good else 'BAD'}: {each.text}" for each in bad_first]
            self.file.ended(result.verdict, result.duration_ms, lines)

    def say(self, event: Event) -> None:
        """Print an event."""
        text = event_text(event)
        self.line(text)
        if self.file is not None:
            self.file.event(text)

    def line(self, text: str) -> None:
        """Print a line."""
        if self.out is None:
            return
        self.clear()
        try:
            print(safe_text(text, self.out), file=self.out, flush=True)
        except OSError:  # the terminal or the reader of a pipe is gone; the verdict still counts
            self.out = None

    def status(self, ms: int, ledger: Ledger, problems: Sequence[str] = ()) -> None:
        """Redraw the status line if `terminal` is a terminal. `ms` is the time since the start, and
        `problems` are those so far."""
        if self.file is not None:
            self.file.counts(ms, ledger.confirmed, problems)
        if self._gone or not self.terminal.isatty():
            return
        now_s = time.monotonic()
        last_s, confirmed = self._last
        rate = (ledger.confirmed - confirmed) / max(0.001, now_s - last_s)
        self._last = now_s, ledger.confirmed
        waiting = [
            partition
            for partition, at_s in sorted(ledger.confirmed_s.items())
            if now_s - at_s > WAITING_S
        ]
        shown = ", ".join(map(str, waiting[:MAX_WAITING_SHOWN]))
        more = ", ..." if len(waiting) > MAX_WAITING_SHOWN else ""
        wait = f"; waiting: partitions {shown}{more}" if waiting else ""
        text = f"{ms / 1000:8.1f} s  {ledger.confirmed:,} acknowledged, {rate:,.0f}/s{wait}"
        width = shutil.get_terminal_size().columns - 1
        self._draw(f"{CLEAR_LINE}{text[:width]}")
        self._redrawn = True

    def clear(self) -> None:
        """Remove the status line."""
        if self._redrawn:
            self._draw(CLEAR_LINE)
            self._redrawn = False

    def _draw(self, text: str) -> None:
        try:
            print(text, end="", file=self.terminal, flush=True)
        except OSError:
            self._gone = True


def event_text(event: Event) -> str:
    """Return the line of an event."""
    node = "" if event.node is None else f"node {event.node}"
    cause = f" ({event.cause})" if event.cause else ""
    return f"{event.ms / 1000:8.3f} s  {node:<8}{event.what}{cause}"


def verdict_lines(result: Result) -> Iterator[str]:
    """Yield the lines of a verdict. The last one names the checks that failed."""
    for check in result.checks:
        yield f"{'ok' if check.good else 'BAD':>10}  {check.text}"
    for each in result.not_judged:
        yield f"{'-':>10}  {each.name}: not judged, because {each.reason}"
    longest = sorted(result.unavailable_ms().items(), key=lambda item: (-item[1], item[0]))
    worst = [f"{partition}: {ms:,} ms" for partition, ms in longest[:MAX_WAITING_SHOWN] if ms]
    if worst:
        yield f"{'':>10}  total time without writes, by partition: {', '.join(worst)}"
    for line in lines(result.evidence.latency_summaries().items()):
        yield f"{'':>10}  {line}"
    failed = sorted({check.name for check in result.checks if not check.good})
    word = f"BAD: {', '.join(failed)}" if failed else f"GOOD: {len(result.checks)} checks"
    word += f", {len(result.not_judged)} not judged" if result.not_judged else ""
    yield f"   verdict  {word} ({result.scenario}, {result.duration_ms / 1000:.1f} s)"
