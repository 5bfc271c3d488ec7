"""The TLS of a node's listeners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from quorate.config.listeners import Listener
from quorate.config.node_config import NodeConfig
from quorate.quorum.rpc.tls.listener_tls import ListenerTls, tls_listeners
from quorate.quorum.seams import Clock
from quorate.quorum.watch.endpoints import HttpEndpoints

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class NodeTls:
    """The listeners of one role that have TLS. The event loop owns it."""

    def __init__(self, config: NodeConfig, listeners: Iterable[Listener], clock: Clock) -> None:
        """Read the stores of those of `listeners` that have TLS. Blocks. Raise ConfigError if one
        cannot be used."""
        self._listeners = tls_listeners(config, listeners, clock)

    def of(self, listener: str) -> ListenerTls | None:
        """Return the TLS of a listener, or None if it has none."""
        return self._listeners.get(listener)

    def report_to(self, endpoints: HttpEndpoints) -> None:
        """Add the metrics of the listeners to /metrics. A node without TLS has none."""
        if self._listeners:
            endpoints.collectors.append(self._metrics)

    def _metrics(self) -> Iterator[Metric]:
        from quorate.quorum.watch.tls import tls_metrics

        return tls_metrics(self._listeners.values())
