"""The tokens that admit HTTP requests to a node. They are read again when their file changes."""

from __future__ import annotations

import asyncio
import logging
import os

from quorate.config.http_token import HTTP_TOKEN_FILE, read_tokens
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.quorum.rpc.delivery import raise_failure

CHECK_INTERVAL_S = 5.0
"""The time between two looks at the file."""
logger = logging.getLogger("quorate.http")


class HttpTokens:
    """The tokens in the file of `quorate.http.token.file`, or none. The event loop owns it."""

    def __init__(self, config: NodeConfig) -> None:
        """Read the file. Blocks. Raise ConfigError if it is invalid."""
        self._config = config
        self._tried = self._signature()
        self._tokens = read_tokens(config)
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> tuple[str, ...]:
        """Return the tokens that admit a request now."""
        return self._tokens

    def start(self) -> None:
        """Follow the file until `close`. A node without tokens starts no task."""
        if self._tokens:
            self._task = asyncio.get_running_loop().create_task(self._follow())
            self._task.add_done_callback(raise_failure)

    def close(self) -> None:
        """Stop to follow the file."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            try:
                tokens = await asyncio.to_thread(self._changed)
            except ConfigError as error:
                logger.error("the tokens in use stay, because the new ones are invalid: %s", error)
                continue
            if tokens is not None:
                self._tokens = tokens
                logger.info("%s: read again, %d tokens are valid", HTTP_TOKEN_FILE, len(tokens))

    def _changed(self) -> tuple[str, ...] | None:
        """Return the tokens if the file has changed since the last attempt, else None. Raise
        ConfigError if it is invalid. Runs in another thread."""
        signature = self._signature()
        if signature == self._tried:
            return None
        self._tried = signature
        return read_tokens(self._config)

    def _signature(self) -> tuple[int, int, int] | None:
        """Return a value that changes with the file, or None if there is no file. Blocks."""
        path = self._config[HTTP_TOKEN_FILE]
        try:
            found = None if path is None else os.stat(path)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)
