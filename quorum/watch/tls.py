"""The metrics of TLS listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.rpc.tls.listener_tls import ListenerTls
from quorate.quorum.watch.families import counters


def tls_metrics(listeners: Collection[ListenerTls]) -> Iterator[Metric]:
    """Yield the metric families of `listeners`."""
    yield counters(
        "quorate_tls_handshakes_total",
        "Complete TLS handshakes.",
        ("listener",),
        [((each.listener,), each.completed) for each in listeners],
    )
    yield counters(
        "quorate_tls_failed_handshakes_total",
        "Failed TLS handshakes, by reason.",
        ("listener", "reason"),
        [
            ((each.listener, reason), count)
            for each in listeners
            for reason, count in each.failures.items()
        ],
    )
