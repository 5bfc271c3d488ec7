"""Keeps Python's collector of reference cycles from stopping a node with a large image.

A full collection visits every container object. That takes 0.25 s with a million partitions, none
of which is in a cycle. After a full collection that took longer than LONG_S, all surviving objects
are therefore frozen (`gc.freeze`), and the collector does not visit them again. A frozen object is
still freed when its reference count becomes 0. Only a reference cycle formed among objects that
were already frozen would leak. Requests and links form no such cycles: their ends free them at once
(`tests/unit/rpc/test_freed_links.py`).

A collection of young objects visits those that are new since the last one, and in a node nearly all
of these belong to requests in progress. Python starts one after 700 new objects. With hundreds of
requests in flight this costs a tenth of a node's CPU time, so a node waits for YOUNG_OBJECTS.

Both settings apply to the whole process, so only the process of a node requests it.
"""

from __future__ import annotations

import gc
from time import thread_time

LONG_S = 0.005
"""CPU time of a full collection, in seconds, after which the survivors are frozen."""
YOUNG_OBJECTS = 10_000
"""New container objects after which Python collects the young ones: about 1 ms of work."""
OLDEST = 2
"""The number of the oldest generation of objects. Its collection is a full one."""


class Collections:
    """A callback in `gc.callbacks`, which measures full collections."""

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
    """Freeze the surviving objects of this process after each long full collection, and collect
    young objects less often."""
    gc.callbacks.append(Collections())
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
