"""Trials of changed TLS settings: an operator's change is stored only if this node can use it.

Only the node itself can read the files of its stores. It builds the contexts of the new settings
in another thread, and discards them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

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
            trial.done(await _refusal(trial))


async def _refusal(trial: _Trial) -> str | None:
    for listener, settings in trial.changed:
        try:
            async with asyncio.timeout(TRIAL_TIMEOUT_S):
                await asyncio.to_thread(listener.check, settings)
        except TimeoutError:
            return f"listener {listener.listener}: the stores take more than {TRIAL_TIMEOUT_S:g} s"
        except Exception as error:  # a file that no library expects must not stop the node
            return f"listener {listener.listener}: {error}"
    return None
