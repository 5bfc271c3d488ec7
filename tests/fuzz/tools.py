"""Two ways in on the operator's own machine: the fault socket, and archives of directories."""

from __future__ import annotations

import io
import json
import random
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from quorate.quorum.analytics.archives.unpacking import unpack
from quorate.quorum.faults.control import FaultControl
from quorate.quorum.faults.faults import Faults
from tests.fuzz.mutations import mutated
from tests.fuzz.streams import looped
from tests.fuzz.target import Target
from tests.unit.rpc.kafka.fakes import FakeClock

LINES: tuple[object, ...] = (
    {},
    {"rules": {}},
    {"rules": {"cut": [2]}, "lease_ms": 5},
    {"lease_ms": 5},
    {"lease_ms": -1},
    {"rules": {"cut": [2], "hold": ["a:1"], "drop": [3], "delay_ms": 5, "paused": False}},
    {"rules": {"drop_probability": 0.5, "jitter_ms": 1, "crashed": False}},
    {"rules": None},
    [],
    "x",
    5,
)
NUMBERS: tuple[object, ...] = (0, -1, 2**31, 2**63, 2**70, 1e400, True, None, "1", [], {}, [[[]]])
NAMES = ("../outside", "/absolute", "a/../../b", "a" * 300, "", ".", "a\x00b", "data/k1/file")
MEMBER_BYTES = (0, 1, 5000)


class Control(Target):
    """One line to the fault socket; every line gets an answer that JSON can hold."""

    def __init__(self) -> None:
        unused = cast(Any, None)
        self._control = FaultControl(Faults(), unused, Path("/nowhere/socket"), FakeClock())

    def feed(self, data: bytes) -> None:
        with suppress(AttributeError):  # of the witness, which a good line asks and nobody is here
            json.dumps(self._control.answer(data))

    def systematic(self) -> Iterator[bytes]:
        for line in LINES:
            yield json.dumps(line).encode()
        for name in ("cut", "hold", "drop", "delay_ms", "jitter_ms", "paused", "x"):
            for value in NUMBERS:
                yield json.dumps({"rules": {name: value}}).encode()
                yield json.dumps({"rules": {name: [value]}}).encode()
        for character in (b"[", b'{"rules":', b'"', b"9", b"\xff", b" "):
            yield character * 5000

    def drawn(self, chance: random.Random) -> bytes:
        return mutated(json.dumps(chance.choice(LINES)).encode(), chance)


class Archive(Target):
    """The bytes of a tar or a zip, which the first byte chooses; nothing leaves its directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._inside = root / "outer" / "inside"

    def feed(self, data: bytes) -> None:
        suffix = ".zip" if data[:1] == b"\x01" else ".tar.gz"
        archive = self._root / f"archive{suffix}"
        archive.write_bytes(data[1:])
        self._inside.mkdir(parents=True)
        try:
            with suppress(shutil.ReadError, OSError):
                unpack(archive, self._inside)
            assert [each.name for each in (self._root / "outer").iterdir()] == ["inside"]
        finally:
            shutil.rmtree(self._root / "outer")

    def systematic(self) -> Iterator[bytes]:
        for name in NAMES:
            for size in MEMBER_BYTES:
                yield b"\x00" + tar(name, size)
                yield b"\x01" + zipped(name, size)
        yield b"\x00" + tar("bomb", 64 << 20)
        yield b"\x01" + zipped("bomb", 64 << 20)

    def drawn(self, chance: random.Random) -> bytes:
        make, head = chance.choice(((tar, b"\x00"), (zipped, b"\x01")))
        whole = make(chance.choice(NAMES), chance.choice(MEMBER_BYTES))
        return head + mutated(whole, chance)


def tar(name: str, size_bytes: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        member = tarfile.TarInfo(name)
        member.size = size_bytes
        archive.addfile(member, io.BytesIO(bytes(size_bytes)))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "../.."
        archive.addfile(link)
    return out.getvalue()


def zipped(name: str, size_bytes: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name or "x"), bytes(size_bytes), zipfile.ZIP_DEFLATED)
    return out.getvalue()


@contextmanager
def fault_control() -> Iterator[Target]:
    with looped():
        yield Control()


@contextmanager
def archives() -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="quorate-fuzz-") as root:
        yield Archive(Path(root))
