"""The TLS of a node's listeners. Changed certificates are read again while the node runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from quorate.config.listeners import Listener
from quorate.config.node_config import NodeConfig
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.rpc.tls.listener_tls import ListenerTls, tls_listeners
from quorate.quorum.seams import Clock
from quorate.quorum.watch.endpoints import HttpEndpoints

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CHECK_INTERVAL_S = 5.0
"""The time between two looks at the files of keystores and truststores."""


class NodeTls:
    """The listeners of one role that have TLS. The event loop owns it."""

    def __init__(self, config: NodeConfig, listeners: Iterable[Listener], clock: Clock) -> None:
        """Read the stores of those of `listeners` that have TLS. Blocks. Raise ConfigError if one
        cannot be used."""
        self._listeners = tls_listeners(config, listeners, clock)
        self._requested = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Return True if a listener has TLS."""
        return bool(self._listeners)

    def of(self, listener: str) -> ListenerTls | None:
        """Return the TLS of a listener, or None if it has none."""
        return self._listeners.get(listener)

    def report_to(self, endpoints: HttpEndpoints) -> None:
        """Add the metrics of the listeners to /metrics. A node without TLS has none."""
        if self._listeners:
            endpoints.collectors.append(self._metrics)

    def start(self) -> None:
        """Read stores again when their files change, until `close`. A node without TLS starts no
        task."""
        if self._listeners:
            self._task = asyncio.get_running_loop().create_task(self._follow_files())
            self._task.add_done_callback(raise_failure)

    def close(self) -> None:
        """Stop reading stores."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def reload(self) -> None:
        """Read all stores again soon, also those whose files have not changed."""
        self._requested.set()

    async def _follow_files(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL_S):
                    await self._requested.wait()
            requested = self._requested.is_set()
            self._requested.clear()
            for each in self._listeners.values():
                await each.reload(also_unchanged=requested)

    def _metrics(self) -> Iterator[Metric]:
        from quorate.quorum.watch.tls import tls_metrics

        return tls_metrics(self._listeners.values())
