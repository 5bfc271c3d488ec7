"""Settings of the C library's allocator for a node's process.

`merge_freed_at_once`: glibc keeps small freed pieces in fastbins, and merges all of them with their
neighbours in one step when a large piece is next freed or allocated. After an image is dropped,
that is a few pieces for each partition: 45 ms with 300,000 partitions, in an unrelated step of the
event loop. Without fastbins each piece is merged when it is freed. No CPU time was measured for
that.

`return_large_blocks`: glibc raises the size from which a block is mapped by itself, up to 32 MiB,
when such a block is freed. Later large blocks come from the heap, and a small piece behind a freed
one keeps its memory. After requests of 20 MB each, a node kept all of their memory. With a fixed
size, a freed block goes back to the system. With 16 MiB, an hour of attacks left a controller 75 MB
larger, and with 4 MiB 21 MB. The second time, objects of closed links waited for the collector.

A fixed size also fixes the number of free bytes above which the end of the heap goes back, at 128
KiB. Then each frame of a MB gives its pages back, and the next frame gets a page fault for each of
them: 70 for 1,000 consumed records of 1,000 bytes, and 350 for as many produced ones. That number
is therefore set, too: 0 and 210 are left.

`return_freed_pages`: the heap only shrinks at its end. If a small piece lives behind freed blocks
of less than that size, they keep their memory, such as the metadata of members that have left their
groups. The function gives back all free pages below the end. In a program with 128 free blocks of 1
MB that took 11 ms, and 2 ms or less afterwards. Other threads that need the heap wait meanwhile.

The settings hold for the whole process, so only a node's process asks for them. With a C library
that has no such function, these functions do nothing.
"""

from __future__ import annotations

import ctypes

M_MXFAST = 1
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
"""The numbers of three options of `mallopt`: the largest size in fastbins, the free bytes at the
end of the heap above which the heap shrinks, and the size from which a block is mapped."""
LARGE_BYTES = 4 << 20
"""Blocks from this size on are mapped by themselves. Most frames of produce and fetch are
smaller."""
KEPT_BYTES = 8 << 20
"""Free bytes at the end of the heap go back to the system when there are as many."""


def merge_freed_at_once() -> None:
    """Merge each small piece with its neighbours when it is freed."""
    _set(M_MXFAST, 0)


def return_large_blocks() -> None:
    """Give the memory of a large block back to the system when it is freed."""
    _set(M_MMAP_THRESHOLD, LARGE_BYTES)
    _set(M_TRIM_THRESHOLD, KEPT_BYTES)


def return_freed_pages() -> None:
    """Give the free pages of the heap back to the system, but KEPT_BYTES at its end. Block."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(KEPT_BYTES)


def _set(option: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(option, value)
