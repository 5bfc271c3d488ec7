"""Compares two decoded responses field by field, and lists the known differences.

Only the presence of ids, addresses, times and texts is compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

IGNORED = ("throttle_time_ms", "documentation")
PRESENCE = (
    *("host", "port", "cluster_id", "log_dir", "topic_id", "session_id"),
    *("member_id", "leader", "producer_id", "directory_id"),
    *(
        "partition_size",
        "total_bytes",
        "usable_bytes",
        "finalized_features_epoch",
        "log_end_offset",
    ),
    *("last_fetch_timestamp", "last_caught_up_timestamp", "client_host"),
)
# (API, path without indexes): why the two may differ there.
DIFFERENCES = {
    ("ApiVersions", ".api_keys"): "transactions, delegation tokens, the new group protocols and "
    "metrics of clients are not offered",
    ("ApiVersions", ".supported_features"): "only metadata.version and "
    "eligible.leader.replicas.version",
    ("ApiVersions", ".supported_features.min_version"): "nodes write the record versions of "
    "metadata.version 23 and later only",
    ("Fetch", ".responses.partitions.aborted_transactions"): "null where Kafka says an empty list: "
    "there are no transactions",
    ("DescribeQuorum", ".topics.partitions.current_voters.replica_directory_id"): "Kafka does not "
    "know it of voters from controller.quorum.voters",
}
SOMETIMES = {
    ("DescribeQuorum", ".topics.partitions.high_watermark"): "other records, and another pace",
    ("DescribeQuorum", ".topics.partitions.leader_epoch"): "as many elections as there were",
}
# Configs of tiered storage, which Quorate lacks, and of KIP-966's second part, which Kafka lacks.
TIERED_STORAGE = ("remote.", "local.", "unclean.recovery.")


def normal(value: Any, name: str = "") -> Any:
    """Arrays of structures are sets: Kafka's come out of hash maps."""
    if dataclasses.is_dataclass(value):
        failed = getattr(value, "error_code", 0)
        return {
            field.name: normal(getattr(value, field.name), field.name)
            for field in dataclasses.fields(value)
            if field.name not in IGNORED and (failed or field.name != "error_message")
        }
    if isinstance(value, tuple | list):
        if name == "configs":  # docs/differences.md: there is no tiered storage
            value = [each for each in value if not each.name.startswith(TIERED_STORAGE)]
        each = [normal(item, name) for item in value]
        return sorted(each, key=repr) if each and isinstance(each[0], dict) else each
    if isinstance(value, memoryview | bytearray):
        value = bytes(value)
    if name == "error_message":
        return "a text or none"
    if name in PRESENCE:
        return "present" if present(value) else "absent"
    return value


def present(value: Any) -> bool:
    return value not in (None, "", -1, 0, bytes(16))


def differing(kafka: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, Kafka's, ours) of all that is not the same."""
    if isinstance(kafka, dict) and isinstance(ours, dict) and kafka.keys() == ours.keys():
        for name in kafka:
            yield from differing(kafka[name], ours[name], f"{path}.{name}")
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for index, pair in enumerate(zip(kafka, ours, strict=True)):
            yield from differing(*pair, f"{path}[{index}]")
    elif kafka != ours:
        yield path, kafka, ours
