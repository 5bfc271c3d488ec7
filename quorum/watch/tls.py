"""The metrics of TLS listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.rpc.tls.listener_tls import ListenerTls
from quorate.quorum.watch.families import counters, gauges


def tls_metrics(listeners: Collection[ListenerTls]) -> Iterator[Metric]:
    """Yield the metric families of `listeners`."""
    yield counters(
        "quorate_tls_handshakes_total",
        "Complete TLS handshakes.",
        ("listener",),
        [((each.listener,), each.completed) for each in listeners],
    )
    yield gauges(
        "quorate_tls_certificate_expiry_seconds",
        "End of validity of the certificate in use, in seconds since 1970.",
        ("listener",),
        [((each.listener,), each.not_after_ms / 1000) for each in listeners],
    )
    yield counters(
        "quorate_tls_reloads_total",
        "Changed certificates that are in use now.",
        ("listener",),
        [((each.listener,), each.reloads) for each in listeners],
    )
    yield counters(
        "quorate_tls_failed_reloads_total",
        "Changed certificates that could not be used.",
        ("listener",),
        [((each.listener,), each.failed_reloads) for each in listeners],
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
