"""The first records of a new active controller, and the bootstrap records of an empty log."""

from __future__ import annotations

from quorate.quorum.controller.configs.min_isr_configs import min_isr_for_all
from quorate.quorum.controller.state.context import Context
from quorate.quorum.metadata.image import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)


def activation_records(context: Context, *, in_transaction: bool) -> list[MetadataRecord]:
    """Return the records of an activation, as Kafka's ActivationRecordsGenerator does.

    They abort a metadata transaction that the previous controller left open (KIP-868). In an empty
    log they add the bootstrap records in a transaction of their own.
    """
    records: list[MetadataRecord] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if METADATA_VERSION not in context.image.features:
        records.append(BeginTransactionRecord(name="Bootstrap records"))
        levels = bootstrap_order(context)
        records += (FeatureLevelRecord(name=name, feature_level=level) for name, level in levels)
        if dict(levels).get(ELIGIBLE_LEADER_REPLICAS):
            records += min_isr_for_all(context)
        records += context.settings.bootstrap_records
        records.append(EndTransactionRecord())
    return records


def bootstrap_order(context: Context) -> list[tuple[str, int]]:
    """Return the features with their levels, metadata.version first, because it determines how the
    following records are read."""
    return sorted(
        context.settings.features.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0])
    )
