"""The interface of a fuzzer's target, and the crash that the fuzzer reports."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from tests.sim.world.loop import SimLoop

SHOWN_BYTES = 2_000


class Crash(Exception):
    """An input that the target does not survive."""

    def __init__(self, target: str, data: bytes, error: BaseException, seed: str = "") -> None:
        what = f"HEX {data.hex()}" if len(data) <= SHOWN_BYTES or not seed else seed
        super().__init__(
            f"python -m tests.fuzz replay {target} {what}  # {type(error).__name__}: "
            f"{' '.join(str(error).split())[:300]}"
        )
        self.data = data


class IncrementalWork:
    """The longest callback of an event loop, in seconds of processor time."""

    def __init__(self, loop: SimLoop) -> None:
        self.longest_s = 0.0
        soon, at = loop.call_soon, loop.call_at

        def call_soon(callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
            return soon(self._timed(callback), *args, **options)

        def call_at(when: float, callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
            return at(when, self._timed(callback), *args, **options)

        vars(loop).update(call_soon=call_soon, call_at=call_at)

    def _timed(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> None:
            began_s = time.thread_time()
            try:
                callback(*args)
            finally:
                self.longest_s = max(self.longest_s, time.thread_time() - began_s)

        return timed


class Target(ABC):
    """One entry for bytes from outside. Used as a context manager; `feed` is called inside."""

    steps: IncrementalWork | None = None
    """The steps of the target's event loop, if it has one that works in slices."""
    left_out: int = 0
    """The inputs that `feed` did not pass on, because an honest node obeys them."""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Take one input. Raise nothing for bad input; any exception is a crash."""

    def feed_alone(self, data: bytes) -> None:
        """Take one input so that no earlier one can keep it from being read."""
        self.feed(data)

    @abstractmethod
    def systematic(self) -> Iterator[bytes]:
        """Yield the inputs that the declarations imply, always the same ones."""

    @abstractmethod
    def drawn(self, chance: random.Random) -> bytes:
        """Return one input made by structure and chance."""

    def settle(self) -> None:  # noqa: B027 - most readers have nothing that waits
        """Let everything that waits for time happen; raise what an earlier input caused."""

    def check(self) -> None:  # noqa: B027
        """Raise AssertionError if the target no longer serves its honest users."""


Opened = Callable[[], AbstractContextManager[Target]]
