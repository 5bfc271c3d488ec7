"""The first server that answers, of several that may be dead, paused or slow.

The servers are tried in their order, each one STAGGER_S after the one before, or at once when that
one has failed. So a paused server, whose system accepts connections that nobody answers, costs
STAGGER_S instead of a timeout (RFC 8305 does the same for the addresses of a host)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from quorate.cli.client.connection import Connection, ConnectionLost

STAGGER_S = 0.3

Attempt = Callable[[], Connection]
"""Connects to one server and waits for its first answer. Raises ConnectionLost or Refused."""


class NoneAnswered(Exception):
    """Every attempt failed. The text has the reason of each. `absent` is True if no server exists
    at any of the addresses (`ConnectionLost.absent`)."""

    def __init__(self, reasons: Sequence[ConnectionLost]) -> None:
        super().__init__("; ".join(map(str, reasons)))
        self.absent = all(each.absent for each in reasons)

    def text(self, controllers: bool) -> str:
        """Return the error of the command: the reasons and the remedy. `controllers` is True if the
        servers are those of --bootstrap-controller."""
        option = "--bootstrap-controller" if controllers else "--bootstrap-server"
        node = "controller" if controllers else "broker"
        if self.absent:
            remedy = f"Start a {node} there, or give the address of one that runs with {option}"
        else:
            remedy = f"Check that these {node}s run, and that no firewall is in between"
        return f"no server answers: {self}. {remedy}"


def first_answer(attempts: Sequence[Attempt]) -> tuple[int, Connection]:
    """Return the number of the first attempt that succeeds, and its connection. The connections of
    later ones are closed.

    Raise NoneAnswered if all raise ConnectionLost. Raise any other exception of an attempt, such as
    Refused for a certificate, as soon as it happens. The attempts must end by themselves."""
    ended: queue.SimpleQueue[tuple[int, Connection | Exception]] = queue.SimpleQueue()
    over = threading.Event()
    reasons: dict[int, ConnectionLost] = {}
    begun = 0
    try:
        while len(reasons) < len(attempts):
            if begun < len(attempts):
                _begin(begun, attempts[begun], ended, over)
                begun += 1
            try:
                number, result = ended.get(timeout=STAGGER_S if begun < len(attempts) else None)
            except queue.Empty:
                continue
            if isinstance(result, Connection):
                return number, result
            if not isinstance(result, ConnectionLost):
                raise result
            reasons[number] = result
    finally:
        over.set()
        _close_all(ended)
    raise NoneAnswered([reasons[number] for number in sorted(reasons)])


def _begin(
    number: int,
    attempt: Attempt,
    ended: queue.SimpleQueue[tuple[int, Connection | Exception]],
    over: threading.Event,
) -> None:
    def run() -> None:
        try:
            ended.put((number, attempt()))
        except Exception as error:
            ended.put((number, error))
        if over.is_set():
            _close_all(ended)

    # A daemon, because a command must not wait at its end for a server that does not answer.
    threading.Thread(target=run, name=f"connect-{number}", daemon=True).start()


def _close_all(ended: queue.SimpleQueue[tuple[int, Connection | Exception]]) -> None:
    while True:
        try:
            _, result = ended.get_nowait()
        except queue.Empty:
            return
        if isinstance(result, Connection):
            result.close()
