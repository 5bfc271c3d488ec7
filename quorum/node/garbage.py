"""The collector of cyclic garbage must not stop a node whose image is large.

A full collection looks at every container there is: 0.25 s with a million partitions, none of which
is in a cycle. So when one took long, what it left is put beyond its reach (`gc.freeze`): it is no
garbage now, and what is let go of later goes by its reference count all the same. Lost is only a
cycle among objects that had outlived a full collection when it was made: a link that was there, not
one of each request.

Of the whole process, so a node's process asks for it, and no library.
"""

from __future__ import annotations

import gc
from time import thread_time

LONG_S = 0.005
OLDEST = 2


class Collections:
    """Told by the collector when a collection begins and ends."""

    def __init__(self) -> None:
        self._begin_s = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != OLDEST:
            return
        if phase == "start":
            self._begin_s = thread_time()
        elif thread_time() - self._begin_s > LONG_S:
            gc.freeze()


def keep_collections_short() -> None:
    gc.callbacks.append(Collections())
