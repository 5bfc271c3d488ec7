"""The allocator of the C library must not stop a node whose image is large.

glibc sets small pieces that were freed aside (fastbins), and merges all of them with their
neighbours in one go as soon as somebody frees or asks for a large piece. After an image was let go
of, that is a few pieces for each partition: 45 ms with 300,000 partitions, in whatever step comes
next. Without fastbins each is merged when it is freed, in the steps that free it; that costs no
CPU time that could be measured.

Of the whole process, so a node's process asks for it, and no library. Other C libraries have no
such thing.
"""

from __future__ import annotations

import ctypes

M_MXFAST = 1


def merge_freed_at_once() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MXFAST, 0)
