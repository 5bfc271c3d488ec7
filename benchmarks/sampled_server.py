"""The command `quorate server FILE` with a sampling profiler, which writes its samples at the end.

A timer of CPU time interrupts the main thread, so waiting is not counted and the node is hardly
slowed. cProfile would make calls expensive and hide the cost inside of them.
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
SUFFIX = ".samples.json"

STARTING = ("_find_and_load", "preload")
"""Functions on the stack while modules are imported. Such samples are ignored."""

Place = tuple[str, str]
"""The file and the name of a function."""


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
        """Write the counts to a JSON file."""
        shown = [[*where, self.own[where], count] for where, count in self.total.items()]
        file.write_text(json.dumps({"samples": self.own.total(), "places": shown}))


def place(frame: FrameType) -> Place:
    """Return the file and function of a frame.

    For methods that dataclasses generate, return the class name in place of the file."""
    code = frame.f_code
    if code.co_filename == "<string>" and "self" in frame.f_locals:
        return type(frame.f_locals["self"]).__name__, code.co_name
    return code.co_filename, code.co_qualname


def run(properties: str) -> None:
    """Run the server until it ends, and write the samples next to its .properties file."""
    sampler = Sampler()
    sampler.start()
    try:
        main(["server", properties])
    finally:
        sampler.stop()
        sampler.write(Path(properties + SUFFIX))


if __name__ == "__main__":
    run(sys.argv[1])
