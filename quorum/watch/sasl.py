"""The metrics of SASL listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from quorate.quorum.watch.families import counters

PREFIX = "kafka_server_socket_server_metrics_"


def sasl_metrics(gates: Collection[SaslGate]) -> Iterator[Metric]:
    """Yield the metric families of the SASL listeners."""
    yield counters(
        f"{PREFIX}successful_authentication_total",
        "Authentications of clients by SASL, and repeated ones.",
        ("listener",),
        [((gate.listener,), gate.successful) for gate in gates],
    )
    yield counters(
        f"{PREFIX}failed_authentication_total",
        "Failed authentications of clients by SASL.",
        ("listener",),
        [((gate.listener,), gate.failed) for gate in gates],
    )
    yield counters(
        f"{PREFIX}expired_connections_killed_total",
        "Connections that were closed because a request came after the session.",
        ("listener",),
        [((gate.listener,), gate.expired) for gate in gates],
    )
