"""The metrics of an authorizer. Both roles of a combined node have their own, by their name."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.watch.families import counters, gauge


def authorizer_metrics(
    authorizer: PortAuthorizer | None, role: str, image: MetadataImage
) -> Iterator[Metric]:
    """Yield the metric families of the authorizer of one role, or nothing without an authorizer."""
    if authorizer is None:
        return
    prefix = f"quorate_{role}_authorizer"
    yield gauge(f"{prefix}_acls", "ACLs (acls-total-count).", len(image.acls))
    audit = authorizer.audit
    yield counters(
        f"{prefix}_decisions_total",
        "Decisions about operations of clients, without those that only filter a list.",
        ("result",),
        [(("allowed",), audit.allowed), (("denied",), audit.denied)],
    )
