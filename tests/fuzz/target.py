"""What a fuzzer feeds: the interface of a target, and the crash that it reports."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

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


class Target(ABC):
    """One entry for bytes from outside. Used as a context manager; `feed` is called inside."""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Take one input. Raise nothing for bad input; any exception is a crash."""

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
