"""The metrics of SASL listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from quorate.quorum.watch import metric_table as table


def sasl_metrics(gates: Collection[SaslGate]) -> Iterator[Metric]:
    """Yield the metric families of the SASL listeners."""
    yield table.SASL_SUCCESSFUL.each([((gate.listener,), gate.successful) for gate in gates])
    yield table.SASL_FAILED.each([((gate.listener,), gate.failed) for gate in gates])
    yield table.SASL_EXPIRED.each([((gate.listener,), gate.expired) for gate in gates])
