"""Trials of changed TLS settings: an operator's change is stored only if this node can use it.

Only the node itself can read the files of its stores. It builds the contexts of the new settings
in another thread, and discards them.

A trial that takes too long cannot be interrupted. It has a thread of its own, because the threads
of the event loop also resolve the names of other nodes. Until it ends, all changes are refused.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from quorate.config.key import ConfigError
from quorate.quorum.rpc.tls.listener_tls import ListenerTls
from quorate.quorum.rpc.tls.settings import TlsSettings

MAX_TRIALS = 64
"""The maximum number of trials that wait."""
TRIAL_TIMEOUT_S = 10.0
"""The maximum time of one trial. The text of an encrypted key decides how long its decryption
takes."""
Done = Callable[[str | None], None]
"""Gets the reason for which the settings cannot be used, or None."""


@dataclass(frozen=True, slots=True)
class _Trial:
    changed: tuple[tuple[ListenerTls, TlsSettings], ...]
    done: Done


class TlsTrials:
    """The trials of one node that wait. The event loop owns it."""

    def __init__(self) -> None:
        self._waiting: deque[_Trial] = deque()
        self._thread: threading.Thread | None = None
        """The thread of the last trial. It runs on if the trial took too long."""

    def add(self, changed: Iterable[tuple[ListenerTls, TlsSettings]], done: Done) -> None:
        """Try the settings of these listeners in the next `run`, then call `done` once. Raise
        ConfigError if too many trials wait."""
        if len(self._waiting) >= MAX_TRIALS:
            raise ConfigError(
                f"{MAX_TRIALS} changes of TLS already wait for their check. Try again"
            )
        self._waiting.append(_Trial(tuple(changed), done))

    async def run(self) -> None:
        """Carry out the trials that wait, one after the other."""
        while self._waiting:
            trial = self._waiting.popleft()
            trial.done(await self._refusal(trial))

    async def _refusal(self, trial: _Trial) -> str | None:
        """Return the reason against the settings of a trial, or None."""
        for listener, settings in trial.changed:
            if self._thread is not None and self._thread.is_alive():
                return (
                    f"listener {listener.listener}: the check of an earlier change still runs, "
                    f"because its stores take more than {TRIAL_TIMEOUT_S:g} s. Try again later"
                )
            try:
                async with asyncio.timeout(TRIAL_TIMEOUT_S):
                    await self._in_thread(partial(listener.check, settings))
            except TimeoutError:
                return (
                    f"listener {listener.listener}: the stores take more than {TRIAL_TIMEOUT_S:g} s"
                )
            except Exception as error:  # a file that no library expects must not stop the node
                return f"listener {listener.listener}: {error}"
        return None

    async def _in_thread(self, check: Callable[[], None]) -> None:
        """Run `check` in a new thread, which does not hold up the end of the process, and raise its
        exception."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Exception | None] = loop.create_future()

        def end(error: Exception | None) -> None:
            if not ended.done():
                ended.set_result(error)

        def run() -> None:
            error = None
            try:
                check()
            except Exception as raised:
                error = raised
            with suppress(RuntimeError):  # the loop of a node that stops is closed
                loop.call_soon_threadsafe(end, error)

        self._thread = threading.Thread(target=run, name="tls-trial", daemon=True)
        self._thread.start()
        error = await ended
        self._thread.join()
        if error is not None:
            raise error
