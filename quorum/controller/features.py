"""Finalized features, and the records that begin a metadata log."""

from __future__ import annotations

from quorate.quorum.controller.context import Context
from quorate.quorum.metadata.image import METADATA_VERSION
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)


def activation_records(context: Context, *, in_transaction: bool) -> list[MetadataRecord]:
    """What a new active controller writes first (kafka-rules 3.10): the end of a metadata
    transaction that the old one left open, and, in an empty log, the bootstrap records in one of
    their own."""
    records: list[MetadataRecord] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if METADATA_VERSION not in context.image.features:
        records.append(BeginTransactionRecord(name="Bootstrap records"))
        records += (
            FeatureLevelRecord(name=name, feature_level=level)
            for name, level in bootstrap_order(context)
        )
        records.append(EndTransactionRecord())
    return records


def bootstrap_order(context: Context) -> list[tuple[str, int]]:
    """metadata.version first: it says how all others are read."""
    return sorted(
        context.settings.features.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0])
    )
