"""The command `quorate server FILE` with a sampling profiler, which writes its samples at the end.

A timer interrupts the main thread each time the process has used INTERVAL_S of CPU time. Waiting is
therefore not counted, and the node is hardly slowed. The CPU time of the other threads counts, too,
but the sample then shows the stack of the main thread.

cProfile is not used, because it slows every call. Functions that make many short calls would appear
to be more expensive than they are.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from quorate.cli.main import main

INTERVAL_S = 0.002
"""The CPU time of the process between two samples, in s."""
SUFFIX = ".samples.json"
"""The end of the name of the file with the samples, after the name of the .properties file."""
STARTING = ("_find_and_load", "preload")
"""Functions that are on the stack while modules are imported. Samples with them are ignored."""

Place = tuple[str, str]
"""The path of the file and the qualified name of a function; see `place` for the exception."""


class Sampler:
    """Counts stack samples of the main thread.

    `own` counts the samples with the place on top of the stack, and `total` all samples with the
    place anywhere on the stack."""

    def __init__(self) -> None:
        self.own: Counter[Place] = Counter()
        self.total: Counter[Place] = Counter()

    def start(self) -> None:
        """Start the timer. The main thread must call it."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """Stop the timer."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        stack: list[Place] = []
        while frame is not None:
            if frame.f_code.co_name in STARTING:
                return
            stack.append(place(frame))
            frame = frame.f_back
        if stack:
            self.own[stack[0]] += 1
            self.total.update(set(stack))

    def write(self, file: Path) -> None:
        """Write the counts to a JSON file.

        `samples` is the number of samples, without the ignored ones. `places` has one list per
        place: file, function, own samples, total samples."""
        shown = [[*where, self.own[where], count] for where, count in self.total.items()]
        file.write_text(json.dumps({"samples": self.own.total(), "places": shown}))


def place(frame: FrameType) -> Place:
    """Return the file and function of a frame.

    A method that dataclasses generate has no file. Return its class name and its plain name."""
    code = frame.f_code
    if code.co_filename == "<string>" and "self" in frame.f_locals:
        return type(frame.f_locals["self"]).__name__, code.co_name
    return code.co_filename, code.co_qualname


def run(properties: str) -> None:
    """Run the server until it ends, and write the samples next to its .properties file.

    The samples are also written if the server raises an error or SystemExit, which is passed on."""
    sampler = Sampler()
    sampler.start()
    try:
        main(["server", properties])
    finally:
        sampler.stop()
        sampler.write(Path(properties + SUFFIX))


if __name__ == "__main__":
    run(sys.argv[1])
