"""Memory that is freed in steps is merged in these steps, and not in one later step."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

LIBRARY, VERSION = platform.libc_ver()
HAS_FASTBINS = LIBRARY == "glibc" and tuple(map(int, VERSION.split("."))) < (2, 43)

# mallinfo() counts what was freed and is not merged yet as `smblks`, its third number.
FREED = """
import ctypes
from quorate.quorum.node.allocator import merge_freed_at_once
from quorate.quorum.metadata.persistent_map import PersistentMap

class Mallinfo(ctypes.Structure):
    _fields_ = [(f"number_{index}", ctypes.c_int) for index in range(10)]

mallinfo = ctypes.CDLL(None).mallinfo
mallinfo.restype = Mallinfo
PREPARED
maps = dict.fromkeys(range(1000))
for number in maps:
    maps[number] = PersistentMap({number: None})
for number in maps:
    maps[number] = None
print(mallinfo().number_2)
"""


@pytest.mark.skipif(not HAS_FASTBINS, reason="only glibc up to 2.42 sets pieces aside")
def test_nothing_that_was_freed_is_set_aside() -> None:
    assert set_aside("") > 500
    assert set_aside("merge_freed_at_once()") == 0


# Small pieces that live on between large blocks, as a node has them.
KEPT = """
from quorate.quorum.node.allocator import return_large_blocks

def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20

PREPARED
first = bytearray(20 << 20)
del first
large, small = [], []
for _ in range(10):
    large.append(bytearray(20 << 20))
    small.append(bytearray(100_000))
held = resident_mb()
del large
print(held - resident_mb())
"""


@pytest.mark.skipif(LIBRARY != "glibc", reason="other libraries have no such limit")
def test_the_memory_of_large_blocks_goes_back_to_the_system() -> None:
    assert returned_mb("") < 50
    assert returned_mb("return_large_blocks()") > 150


# Blocks that come from the heap, such as the metadata of the members of groups.
PINNED = """
from quorate.quorum.node.allocator import return_freed_pages, return_large_blocks

def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20

return_large_blocks()
blocks, small = [], []
for _ in range(100):
    blocks.append(bytearray(1 << 20))
    small.append(bytearray(3000))
held = resident_mb()
del blocks
PREPARED
print(held - resident_mb())
"""


@pytest.mark.skipif(LIBRARY != "glibc", reason="other libraries have no such heap")
def test_free_pages_below_a_piece_in_use_go_back_to_the_system() -> None:
    assert returned_mb("", PINNED) < 20
    assert returned_mb("return_freed_pages()", PINNED) > 80


# Frames of produce and fetch, each freed before the next one comes.
FRAMES = """
from resource import RUSAGE_SELF, getrusage
from quorate.quorum.node.allocator import return_large_blocks

PREPARED
for _ in range(50):
    frame = bytearray(3 << 20)
    del frame
before = getrusage(RUSAGE_SELF).ru_minflt
for _ in range(50):
    frame = bytearray(3 << 20)
    del frame
print((getrusage(RUSAGE_SELF).ru_minflt - before) // 50)
"""


@pytest.mark.skipif(LIBRARY != "glibc", reason="other libraries have no such limit")
def test_the_pages_of_a_frame_serve_the_next_one() -> None:
    program = [sys.executable, "-c", FRAMES.replace("PREPARED", "return_large_blocks()")]
    faults = int(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
    assert faults < 10, f"{faults} page faults for each frame"


def returned_mb(prepared: str, program_text: str = KEPT) -> int:
    program = [sys.executable, "-c", program_text.replace("PREPARED", prepared)]
    return int(subprocess.run(program, capture_output=True, check=True, text=True).stdout)


def set_aside(prepared: str) -> int:
    """Return the number of free pieces, from a process of its own: the setting is per process."""
    program = [sys.executable, "-c", FREED.replace("PREPARED", prepared)]
    return int(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
