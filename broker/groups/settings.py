"""The coordinator's settings, under Kafka's names and with Kafka's defaults.

The one default that differs is `group.initial.rebalance.delay.ms`, which is 0
(docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The time that a new member may wait for its JoinGroup response before it is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settings of the group coordinator. They do not change while the broker runs.

    `max_size` is the maximum number of members of one group. `offset_metadata_max_bytes` is
    compared with the number of characters of the metadata, as in Kafka."""

    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    """The interval between scans for expired offsets."""

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> GroupSettings:
        """Return the settings from a node's configuration, a mapping from config key to parsed
        value.
        """
        return cls(
            min_session_timeout_ms=node["group.min.session.timeout.ms"],
            max_session_timeout_ms=node["group.max.session.timeout.ms"],
            initial_rebalance_delay_ms=node["group.initial.rebalance.delay.ms"],
            max_size=node["group.max.size"],
            offset_metadata_max_bytes=node["offset.metadata.max.bytes"],
            offsets_retention_ms=node["offsets.retention.minutes"] * 60_000,
            offsets_retention_check_interval_ms=node["offsets.retention.check.interval.ms"],
        )
