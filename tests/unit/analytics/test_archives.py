"""Archives from untrusted sources: the extracted files, and the limits beyond which an archive is
refused."""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import random
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorum.analytics.archives import decompression, unpacking
from quorate.quorum.analytics.archives.decompression import DecompressedStream, StreamTooLarge
from quorate.quorum.analytics.archives.unpacking import ArchiveTooLarge, unpack

KINDS = ("tar", "gztar", "bztar", "xztar", "zip")


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """The directory into which archives are extracted."""
    directory = tmp_path / "in"
    directory.mkdir()
    return directory


def tar_of(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    """Write a tar archive with these members, and return its path."""
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def files(directory: Path) -> dict[str, bytes]:
    """Return the content of all files below a directory by relative path."""
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in directory.rglob("*")
        if each.is_file()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_packed_is_unpacked_and_no_one_elses(
    tmp_path: Path, inside: Path, kind: str
) -> None:
    root = tmp_path / "data"
    content = {f"d{n}/{n:020}.log": random.Random(n).randbytes(n * 70_001) for n in range(6)}
    content["d1/zeros.index"] = bytes(3_000_000)
    for name, data in content.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    archive = Path(shutil.make_archive(str(tmp_path / "a"), kind, root))
    before = os.umask(0)
    try:
        unpack(archive, inside)
    finally:
        os.umask(before)
    assert files(inside) == content
    modes = {each.is_dir(): stat.S_IMODE(each.stat().st_mode) for each in inside.rglob("*")}
    assert modes == {True: 0o700, False: 0o600}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("limit", "value", "says"),
    [
        ("MAX_MEMBERS", 2, "more than 2 members"),
        ("MAX_MEMBER_BYTES", 9_999, "has 10000 bytes, more than 9999"),
        ("MAX_UNPACKED_BYTES", 29_999, "more than 29999 bytes"),
        ("FREE_BYTES", 1_000, "more than 0 for one"),
    ],
)
def test_an_archive_beyond_a_limit_is_refused_before_it_is_written(
    tmp_path: Path,
    inside: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    limit: str,
    value: int,
    says: str,
) -> None:
    root = tmp_path / "data"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.log").write_bytes(bytes(10_000))
    archive = Path(shutil.make_archive(str(tmp_path / "a"), kind, root))
    monkeypatch.setattr(unpacking, limit, value)
    monkeypatch.setattr(unpacking, "MAX_RATIO", 0 if limit == "FREE_BYTES" else 1000)
    with pytest.raises(ArchiveTooLarge, match=says) as refused:
        unpack(archive, inside)
    assert archive.name in str(refused.value) and "Unpack it yourself" in str(refused.value)
    assert sum(map(len, files(inside).values())) < 30_000


def test_a_header_that_claims_gigabytes_is_not_read(tmp_path: Path, inside: Path) -> None:
    """Python's reader of tar archives would read an extended header into memory completely."""
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 3 << 30
    archive = tmp_path / "a.tar"
    archive.write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))
    with pytest.raises(ArchiveTooLarge, match="one of its headers has 32212"):
        unpack(archive, inside)


def test_a_stream_that_expands_beyond_the_limit_is_left(
    tmp_path: Path, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are skipped between two members count, too."""
    archive = tar_of(tmp_path / "a.tar.gz", {"../skipped": bytes(5_000_000), "0.log": b"x"})
    monkeypatch.setattr(unpacking, "COPY_BYTES", 0)
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 5_000_000)
    with pytest.raises(ArchiveTooLarge):
        unpack(archive, inside)


def test_memory_of_an_xz_archive_is_bounded(
    tmp_path: Path, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tar_of(tmp_path / "a.tar", {"0.log": b"x"}, "w")
    archive = tmp_path / "a.tar.xz"
    archive.write_bytes(lzma.compress(plain.read_bytes(), preset=9))
    unpack(archive, inside)
    monkeypatch.setattr(decompression, "MAX_LZMA_BYTES", 1 << 20)
    with pytest.raises(shutil.ReadError, match="is damaged"):
        unpack(archive, inside)


def test_links_devices_and_names_that_lead_elsewhere_are_passed_over(
    tmp_path: Path, inside: Path
) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        for name, kind in (
            ("link", tarfile.SYMTYPE),
            ("hard", tarfile.LNKTYPE),
            ("fifo", tarfile.FIFOTYPE),
            ("device", tarfile.CHRTYPE),
            ("block", tarfile.BLKTYPE),
            ("/absolute", tarfile.REGTYPE),
            ("a/../../up", tarfile.REGTYPE),
            ("x" * 2_000, tarfile.REGTYPE),
            ("/".join("d" * 40), tarfile.REGTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(tmp_path)
            tar.addfile(member, io.BytesIO())
    unpack(archive, inside)
    assert list(inside.rglob("*")) == []


def test_links_of_a_zip_are_passed_over(tmp_path: Path, inside: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, str(tmp_path))
        packed.writestr("../up", "x")
        packed.writestr("0.log", "x")
    unpack(archive, inside)
    assert files(inside) == {"0.log": b"x"}


def test_a_zip_directory_that_announces_too_much_is_not_read(tmp_path: Path, inside: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("0.log", "x")
    content = bytearray(archive.read_bytes())
    end = content.rfind(b"PK\x05\x06")
    content[end + 10 : end + 12] = b"\xff\xff"
    archive.write_bytes(content)
    with pytest.raises(ArchiveTooLarge, match="announces more than 65000 members"):
        unpack(archive, inside)


@given(st.binary(max_size=600), st.sampled_from(["a.tar.gz", "a.zip", "a.tar"]))
def test_any_bytes_are_an_archive_or_refused(content: bytes, name: str) -> None:
    unpack_bytes(content, name)


@given(st.data(), st.sampled_from(["a.tar.gz", "a.zip", "a.tar.xz"]))
def test_any_changed_archive_is_read_or_refused(data: st.DataObject, name: str) -> None:
    content = bytearray(PACKED[name])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    unpack_bytes(bytes(content), name)


def packed(name: str) -> bytes:
    """Return an archive with one file, as bytes. The extension decides its format."""
    file = io.BytesIO()
    if name.endswith("zip"):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/0.log", b"data" * 100)
    else:
        with tarfile.open(fileobj=file, mode="w:gz" if name.endswith("gz") else "w:xz") as tar:
            member = tarfile.TarInfo("a/0.log")
            member.size = 400
            tar.addfile(member, io.BytesIO(b"data" * 100))
    return file.getvalue()


PACKED = {name: packed(name) for name in ("a.tar.gz", "a.zip", "a.tar.xz")}


def unpack_bytes(content: bytes, name: str) -> None:
    """Extract an archive from memory. The fuzzer calls it, too."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as root:
        archive = Path(root, name)
        archive.write_bytes(content)
        inside = Path(root, "in")
        inside.mkdir()
        with contextlib.suppress(shutil.ReadError, OSError):
            unpack(archive, inside)
        assert {each.name for each in Path(root).iterdir()} == {name, "in"}


@given(st.lists(st.integers(0, 200_000), max_size=6), st.sampled_from([0, 1, 9]))
def test_a_stream_goes_back_only_a_little(sizes: list[int], back: int) -> None:
    content = random.Random(len(sizes)).randbytes(300_000)
    stream = DecompressedStream(io.BytesIO(content), 1 << 20)
    position = 0
    for size in sizes:
        assert stream.read(size) == content[position : position + size]
        position = min(len(content), position + size)
        assert stream.tell() == position
        position = stream.seek(max(0, position - back))
    with pytest.raises(StreamTooLarge):
        stream.read(decompression.MAX_READ_BYTES + 1)
