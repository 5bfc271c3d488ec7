"""Settings of the C library's allocator for a node's process.

`merge_freed_at_once`: glibc keeps small freed pieces in fastbins, and merges all of them with their
neighbours in one step when a large piece is next freed or allocated. After an image is dropped,
that is a few pieces for each partition: 45 ms with 300,000 partitions, in an unrelated step of the
event loop. Without fastbins each piece is merged when it is freed. No CPU time was measured for
that.

`return_large_blocks`: glibc raises the size from which a block is mapped by itself, up to 32 MiB,
when such a block is freed. Later large blocks come from the heap, and a small piece behind a freed
one keeps its memory. After requests of 20 MB each, a node kept all of their memory. With a fixed
size, a freed block goes back to the system.

The settings hold for the whole process, so only a node's process asks for them. With a C library
that has no `mallopt`, both functions do nothing.
"""

from __future__ import annotations

import ctypes

M_MXFAST = 1
M_MMAP_THRESHOLD = -3
"""The numbers of two options of `mallopt`: the largest size in fastbins, and the size from which a
block is mapped."""
LARGE_BYTES = 4 << 20
"""Blocks from this size on are mapped by themselves. Frames of produce and fetch are smaller."""


def merge_freed_at_once() -> None:
    """Merge each small piece with its neighbours when it is freed."""
    _set(M_MXFAST, 0)


def return_large_blocks() -> None:
    """Give the memory of a large block back to the system when it is freed."""
    _set(M_MMAP_THRESHOLD, LARGE_BYTES)


def _set(option: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(option, value)
