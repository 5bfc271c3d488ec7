"""The metrics of an authorizer. Both roles of a combined node have their own, by their name."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.watch import metric_table as table

OF_ROLE = {
    "broker": (table.BROKER_ACLS, table.BROKER_DECISIONS),
    "controller": (table.CONTROLLER_ACLS, table.CONTROLLER_DECISIONS),
}


def authorizer_metrics(
    authorizer: PortAuthorizer | None, role: str, image: MetadataImage
) -> Iterator[Metric]:
    """Yield the metric families of the authorizer of one role, or nothing without an authorizer."""
    if authorizer is None:
        return
    acls, decisions = OF_ROLE[role]
    yield acls.of(len(image.acls))
    audit = authorizer.audit
    yield decisions.each([(("allowed",), audit.allowed), (("denied",), audit.denied)])
