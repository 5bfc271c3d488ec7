"""The proxies and the faulty disk of the system test: each fault has its effect, and ends."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.quorum.log.disks import disk as real
from quorate.quorum.seams import Address, Link, LinkHandler, Wire
from tests.clients.cluster import wait_for
from tests.system import disk_faults
from tests.system.disk_faults import FAILS, FULL, GATE, SLOW, WORKS, DiskFaults, FaultyDisk
from tests.system.faults import CLIENTS, Action
from tests.system.faulty_node import ProxiedTransport
from tests.system.links import Links, write_translations

CONTROLLER, BROKER = 1, 4
NODE = 3
SILENCE_S = 0.15
"""A held byte does not arrive within this time. A test waits for it once per direction."""
ANSWER_S = 10.0


class Wired:
    """Proxies between the clients, a controller and a broker. This test is all of them."""

    def __init__(self) -> None:
        self.links = Links([CONTROLLER], [BROKER])
        self._listening = {each: socket.create_server(("127.0.0.1", 0)) for each in (1, 4)}
        self.addresses = {
            each: Address("127.0.0.1", server.getsockname()[1])
            for each, server in self._listening.items()
        }
        self.links.connect(self.addresses, self.addresses)

    def close(self) -> None:
        self.links.close()
        for server in self._listening.values():
            server.close()

    def port(self, source: int, target: int) -> int:
        if source == CLIENTS:
            return self.links.advertised(target).port
        return self.links.translation(source, self.addresses)[str(self.addresses[target])]

    def connection(self, source: int, target: int) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a connection that has carried a byte in each direction."""
        near = socket.create_connection(("127.0.0.1", self.port(source, target)))
        self._listening[target].settimeout(ANSWER_S)
        far, _ = self._listening[target].accept()
        for one, other in ((near, far), (far, near)):
            one.settimeout(ANSWER_S)
            other.settimeout(ANSWER_S)
            one.sendall(b"x")
            assert other.recv(1) == b"x"
        return near, far


@pytest.fixture
def wired() -> Iterator[Wired]:
    made = Wired()
    yield made
    made.close()


def hears_nothing(link: socket.socket) -> bool:
    link.settimeout(SILENCE_S)
    try:
        return not link.recv(1)
    except TimeoutError:
        return True
    finally:
        link.settimeout(ANSWER_S)


def test_a_held_link_carries_its_bytes_when_it_is_released(wired: Wired) -> None:
    near, far = wired.connection(CONTROLLER, BROKER)
    wired.links.act(Action.HOLD, BROKER, [CONTROLLER])
    near.sendall(b"there")
    far.sendall(b"back")
    assert hears_nothing(near) and hears_nothing(far)
    assert wired.links.act(Action.CONNECT, BROKER, [CONTROLLER]) == 2
    assert (far.recv(5), near.recv(4)) == (b"there", b"back")
    near.close()
    far.close()


@pytest.mark.parametrize("silent", [CONTROLLER, BROKER])
def test_an_end_that_sends_nothing_still_receives(wired: Wired, silent: int) -> None:
    ends = dict(zip((CONTROLLER, BROKER), wired.connection(CONTROLLER, BROKER), strict=True))
    mute, other = ends.pop(silent), *ends.values()
    wired.links.act(Action.ONE_WAY, silent, [BROKER + CONTROLLER - silent])
    other.sendall(b"heard")
    assert mute.recv(5) == b"heard"
    mute.sendall(b"late")
    assert hears_nothing(other)
    assert wired.links.act(Action.CONNECT, silent, [BROKER + CONTROLLER - silent]) == 1
    assert other.recv(4) == b"late"
    mute.close()
    other.close()


def test_the_end_of_a_held_connection_is_held_behind_its_bytes(wired: Wired) -> None:
    near, far = wired.connection(CONTROLLER, BROKER)
    wired.links.act(Action.HOLD, CONTROLLER, [BROKER])
    near.sendall(b"last")
    near.close()
    assert hears_nothing(far)
    wired.links.act(Action.CONNECT, CONTROLLER, [BROKER])
    assert far.recv(4) == b"last" and far.recv(1) == b""
    far.close()


def test_a_cut_resets_connections_and_new_ones_and_no_others(wired: Wired) -> None:
    near, far = wired.connection(CLIENTS, BROKER)
    other, its_far = wired.connection(CONTROLLER, BROKER)
    wired.links.act(Action.CUT, CLIENTS, [BROKER])
    for end in (near, far):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
        end.close()
    with (
        socket.create_connection(("127.0.0.1", wired.port(CLIENTS, BROKER))) as late,
        pytest.raises(ConnectionResetError),
    ):
        late.recv(1)
    other.sendall(b"fine")
    assert its_far.recv(4) == b"fine"
    assert wired.links.act(Action.CONNECT, CLIENTS, [BROKER]) == 2
    for end in (*wired.connection(CLIENTS, BROKER), other, its_far):
        end.close()


def test_late_bytes_keep_their_order_also_behind_the_end_of_the_fault(wired: Wired) -> None:
    near, far = wired.connection(CONTROLLER, BROKER)
    wired.links.act(Action.DELAY, CONTROLLER, [BROKER])
    near.sendall(b"first")
    wait_for(lambda: wired.links.act(Action.DELAY, CONTROLLER, [BROKER]), "the proxy has it")
    wired.links.act(Action.CONNECT, CONTROLLER, [BROKER])
    near.sendall(b"second")
    found = b""
    while len(found) < 11:
        found += far.recv(11)
    assert found == b"firstsecond"
    near.close()
    far.close()


async def test_a_node_reaches_others_through_its_own_proxies_only(
    wired: Wired, tmp_path: Path
) -> None:
    def accept(link: Link) -> LinkHandler:
        raise AssertionError("connected")

    file = tmp_path / "links.json"
    write_translations(wired.links, wired.addresses, file)
    found = json.loads(file.read_text())
    assert found[str(CONTROLLER)][str(wired.addresses[BROKER])] == wired.port(CONTROLLER, BROKER)
    ports = {port for each in found.values() for port in each.values()}
    assert len(ports) == 4 and not ports & {each.port for each in wired.addresses.values()}
    with pytest.raises(KeyError):
        await ProxiedTransport().connect(
            Address("127.0.0.1", 1), Wire.KAFKA, accept, max_frame_bytes=1, timeout_ms=1
        )


# -- disks -------------------------------------------------------------------------------------


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DiskFaults]:
    monkeypatch.setattr(real, "OsFile", disk_faults.FaultyFile)
    monkeypatch.setattr(GATE, "node_id", NODE)
    monkeypatch.setattr(GATE, "faults", DiskFaults(tmp_path / "map"))
    yield DiskFaults(tmp_path / "map")


def refused(disk: FaultyDisk, path: Path) -> list[int | None]:
    """Write, create, rename, sync and read; return the error of each, None without one."""
    file = disk.open(str(path), create=True)
    calls = (
        lambda: file.pwrite(b"12345678", 0),
        lambda: disk.open(f"{path}-new", create=True).close(),
        lambda: disk.make_dir(f"{path}-dir"),
        lambda: disk.rename(f"{path}-old", f"{path}-older"),
        file.sync,
        lambda: disk.sync_dir(str(path.parent)),
        lambda: file.pread(1, 0),
    )
    errors: list[int | None] = []
    for call in calls:
        try:
            call()
            errors.append(None)
        except OSError as error:
            errors.append(error.errno)
    file.close()
    return errors


FULL_ERRORS = [errno.ENOSPC] * 3 + [None] * 4


@pytest.mark.parametrize(
    ("mode", "errors", "written"),
    [
        (WORKS, [None] * 7, b"12345678"),
        (SLOW, [None] * 7, b"12345678"),
        (FULL, FULL_ERRORS, b"1234"),
        (FAILS, [errno.EIO] * 7, b"1234"),
    ],
)
def test_a_disk_refuses_what_its_mode_says_and_counts_it(
    tmp_path: Path,
    faults: DiskFaults,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
    errors: list[int | None],
    written: bytes,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    path = tmp_path / "file"
    path.touch()
    Path(f"{path}-old").touch()
    faults.set(NODE, mode)
    assert refused(FaultyDisk(), path) == errors
    assert path.read_bytes() == written
    effects = {WORKS: 0, SLOW: 2, FULL: 3, FAILS: 7}[mode]
    assert faults.set(NODE, WORKS) == effects
    assert len(slept) == (2 if mode == SLOW else 0)
    assert faults.get(NODE) == (WORKS, 0)


def test_the_faults_of_another_node_change_nothing(tmp_path: Path, faults: DiskFaults) -> None:
    path = tmp_path / "file"
    Path(f"{path}-old").touch()
    faults.set(NODE + 1, FAILS)
    assert refused(FaultyDisk(), path) == [None] * 7
    assert faults.set(NODE + 1, WORKS) == 0
    assert os.path.getsize(path) == 8
