"""Long work on the event loop of the console, in slices."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from quorate.quorum.incremental_work import IncrementalWork

T = TypeVar("T")


async def in_slices(work: IncrementalWork[T]) -> T:
    """Run the steps of the work, and return its result. The event loop does other work after each
    step. Raise what a step raises."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found
        await asyncio.sleep(0)
