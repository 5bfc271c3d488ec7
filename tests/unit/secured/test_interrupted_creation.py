"""A creation of the files that secure a cluster may end at any call of the disk. The next one
completes it."""

from __future__ import annotations

import os
import ssl
from itertools import count
from pathlib import Path

import pytest

from quorate.quorum.secured import private_files
from quorate.quorum.secured.authority_dir import AuthorityDir
from quorate.quorum.secured.private_files import SecurityFileError, write
from quorate.quorum.secured.secured_dir import SecuredDir

pytestmark = pytest.mark.timeout(60)


class Killed(BaseException):
    """The end of the process."""


def end_at(call: int, patched: pytest.MonkeyPatch) -> None:
    """Let the process end at this call of fsync, before it has an effect."""
    calls = count()

    def fsync(descriptor: int) -> None:
        if next(calls) == call:
            raise Killed

    patched.setattr(os, "fsync", fsync)


def created(root: Path, call: int) -> bool:
    """Return True if the creation was complete before that call of fsync."""
    with pytest.MonkeyPatch.context() as patched:
        end_at(call, patched)
        try:
            SecuredDir(root).create("c", (1,))
        except Killed:
            return False
    return True


def test_a_creation_that_ended_anywhere_is_completed(tmp_path: Path) -> None:
    for call in count():
        files = SecuredDir(tmp_path / str(call))
        if created(tmp_path / str(call), call):
            break
        files.create("other", (1,))
        assert files.exists
        assert files.cluster_id(1) == "other"
        context = ssl.create_default_context(cafile=str(files.authority.certificate))
        context.load_cert_chain(files.authority.keystore("node-1"))
        left = list(files.authority.root.rglob(".*"))
        assert not left, "a key is left in a file that nothing reads"
    assert call > 20


def test_an_authority_is_completed_with_its_own_key(tmp_path: Path) -> None:
    authority = AuthorityDir(tmp_path)
    authority.create("Quorate", 1)
    key = (tmp_path / "ca.key").read_bytes()
    with pytest.raises(SecurityFileError, match="has a certificate authority already"):
        authority.create("Quorate", 1)
    authority.certificate.unlink()
    authority.create("Quorate", 1)
    assert (tmp_path / "ca.key").read_bytes() == key


def test_a_file_of_a_call_that_ended_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    with pytest.MonkeyPatch.context() as patched:
        end_at(0, patched)
        with pytest.raises(Killed):
            private_files.write(file, b"first")
    assert not file.exists()
    write(file, b"second")
    assert [each.name for each in tmp_path.iterdir()] == ["key.pem"]
    assert file.read_bytes() == b"second"


@pytest.mark.parametrize("name", ["client.properties", "librdkafka.properties"])
def test_a_file_of_the_user_is_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(SecurityFileError, match=f"{name} exists already"):
        SecuredDir(tmp_path).create("c", (1,))
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"
