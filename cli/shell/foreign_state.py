"""The metadata that only Apache Kafka uses, replayed from its records.

It consists of delegation tokens. The shell shows it.
Quorate does not act on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quorate.quorum.metadata import unsupported_records as records
from quorate.quorum.metadata.records import MetadataRecord


@dataclass(slots=True)
class ForeignState:
    """The state that the records replayed so far describe."""

    tokens: dict[str, records.DelegationTokenRecord] = field(default_factory=dict)

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record, whose type must be in RULES."""
        RULES[type(record)](self, record)


def _token(state: ForeignState, record: records.DelegationTokenRecord) -> None:
    state.tokens[record.token_id] = record


def _no_token(state: ForeignState, record: records.RemoveDelegationTokenRecord) -> None:
    state.tokens.pop(record.token_id, None)


RULES: dict[type[MetadataRecord], Callable[[ForeignState, Any], None]] = {
    records.DelegationTokenRecord: _token,
    records.RemoveDelegationTokenRecord: _no_token,
}
