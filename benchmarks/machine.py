"""The limits of this machine, which are the reference for a run without a peer."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from statistics import median

SECONDS = 0.5
"""The duration of each measurement."""
MESSAGE = b"x" * 1024
CHUNK = b"x" * (1 << 20)


@dataclass(frozen=True, slots=True)
class Limits:
    """The measured limits."""

    fsyncs_per_s: float
    """Appends of 1 KB per second, each durable before the next, by one writer to one file."""
    round_trip_ms: float
    """A round trip of 1 KB over loopback, with blocking sockets and two Python threads."""
    loopback_mb_per_s: float
    """One-way throughput over loopback, in chunks of 1 MB."""


def limits(directory: str | None = None) -> Limits:
    """Measure the limits, each for SECONDS.

    `directory` is where the file for fsync lies. None means the directory for temporary files."""
    return Limits(fsync_rate(directory), round_trip_ms(), loopback_rate())


def fsync_rate(directory: str | None) -> float:
    """Return durable appends per second."""
    with tempfile.TemporaryFile(dir=directory) as file:
        begin_s = time.monotonic()
        count = 0
        while time.monotonic() - begin_s < SECONDS:
            os.write(file.fileno(), MESSAGE)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.monotonic() - begin_s)


def round_trip_ms() -> float:
    """Return the median round trip over loopback, in ms."""
    near, far = tcp_pair()

    def echo() -> None:
        while data := far.recv(len(MESSAGE)):
            far.sendall(data)

    thread = threading.Thread(target=echo)
    thread.start()
    taken_s = []
    end_s = time.monotonic() + SECONDS
    while time.monotonic() < end_s:
        begin_s = time.perf_counter()
        near.sendall(MESSAGE)
        near.recv(len(MESSAGE), socket.MSG_WAITALL)
        taken_s.append(time.perf_counter() - begin_s)
    near.close()
    thread.join()
    far.close()
    return median(taken_s) * 1000


def loopback_rate() -> float:
    """Return the throughput over loopback, in MB/s."""
    near, far = tcp_pair()
    buffer = bytearray(len(CHUNK))

    def drain() -> None:
        while far.recv_into(buffer):
            pass

    thread = threading.Thread(target=drain)
    thread.start()
    begin_s = time.monotonic()
    sent_bytes = 0
    while time.monotonic() - begin_s < SECONDS:
        near.sendall(CHUNK)
        sent_bytes += len(CHUNK)
    near.close()
    thread.join()
    far.close()
    return sent_bytes / (time.monotonic() - begin_s) / 1e6


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets with TCP_NODELAY."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    for each in (near, far):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return near, far
