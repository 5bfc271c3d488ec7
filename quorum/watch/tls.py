"""The metrics of TLS listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.rpc.tls.listener_tls import ListenerTls
from quorate.quorum.watch import metric_table as table


def tls_metrics(listeners: Collection[ListenerTls]) -> Iterator[Metric]:
    """Yield the metric families of `listeners`."""
    yield table.TLS_HANDSHAKES.each([((each.listener,), each.completed) for each in listeners])
    expiries = [((each.listener,), each.not_after_ms / 1000) for each in listeners]
    yield table.TLS_EXPIRY.each(expiries)
    yield table.TLS_RELOADS.each([((each.listener,), each.reloads) for each in listeners])
    failed = [((each.listener,), each.failed_reloads) for each in listeners]
    yield table.TLS_FAILED_RELOADS.each(failed)
    yield table.TLS_FAILED_HANDSHAKES.each(
        ((each.listener, reason), count)
        for each in listeners
        for reason, count in each.failures.items()
    )
