"""The metrics of SASL listeners."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from quorate.quorum.rpc.kafka.sasl_gate import SaslGate
from quorate.quorum.watch import metric_table as table

if TYPE_CHECKING:
    from quorate.quorum.rpc.jwks.refresher import KeyRefresher


def sasl_metrics(gates: Collection[SaslGate]) -> Iterator[Metric]:
    """Yield the metric families of the SASL listeners."""
    yield table.SASL_SUCCESSFUL.each([((gate.listener,), gate.successful) for gate in gates])
    yield table.SASL_FAILED.each([((gate.listener,), gate.failed) for gate in gates])
    yield table.SASL_EXPIRED.each([((gate.listener,), gate.expired) for gate in gates])


def token_metrics(refreshers: Collection[KeyRefresher]) -> Iterator[Metric]:
    """Yield the metric families of the keys of token providers."""
    yield table.TOKEN_KEYS.each([((each.listener,), len(each.keys.keys)) for each in refreshers])
    refreshes = [((each.listener,), each.refreshes) for each in refreshers]
    yield table.KEY_REFRESHES.each(refreshes)
    failed = [((each.listener,), each.failures) for each in refreshers]
    yield table.FAILED_KEY_REFRESHES.each(failed)
