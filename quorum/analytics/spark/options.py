"""The options of the data source `quorate.metadata`, which Spark passes as texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.log.plan import Choice
from quorate.quorum.analytics.log.segments import SLICE_BYTES
from quorate.quorum.ids import uuid_from_text
from quorate.quorum.metadata.record_text import NAMES

VALUES = {
    "include": ("", "base", "snapshots"),
    "mode": ("permissive", "strict"),
    "nodes": ("one", "all"),
}
"""The allowed values of each option. The first one is the default."""
TYPES = "types"
"""The name of the option with record types, separated by commas."""
TOPIC_IDS = "topicIds"
"""The name of the option with topic ids, separated by commas."""
MIN_SLICE_BYTES, MAX_SLICE_BYTES = 1, 64 << 20
"""A task holds a slice in memory, with its rows, which may take several times as much."""
MAX_TASK_MIB = 512
"""The resident memory of a task that reads a slice of MAX_SLICE_BYTES. Tests measure 310 MiB."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one `load`."""

    given: Mapping[str, str]

    def choice(self) -> Choice:
        """Return the part of the logs to read. Raise BadOption for an invalid value."""
        return Choice(
            locations=self.locations(),
            include=self._one_of("include"),
            every_node=self._one_of("nodes") == "all",
            slice_bytes=self._slice_bytes(),
            strict=self._one_of("mode") == "strict",
            plan=self._text("plan", ""),
        )

    def types(self) -> frozenset[str] | None:
        """Return the record types to decode, or None for all. Raise BadOption for another name."""
        text = self._text(TYPES, "")
        named = frozenset(each.strip() for each in text.split(",")) if text else None
        if named and (unknown := sorted(named.difference(NAMES.values()))):
            raise BadOption(f"types has {unknown[0]!r}, which is no record type")
        return named

    def topics(self) -> frozenset[int] | None:
        """Return the first eight bytes of each chosen topic id as signed numbers, or None for all
        topics. Raise BadOption for a text that is no id."""
        text = self._text(TOPIC_IDS, "")
        if not text:
            return None
        try:
            ids = [uuid_from_text(each.strip()) for each in text.split(",")]
        except ValueError as error:
            raise BadOption(f"{TOPIC_IDS} has a text that is no topic id: {error}") from None
        return frozenset(int.from_bytes(each[:8], signed=True) for each in ids)

    def locations(self) -> tuple[str, ...]:
        """Return the locations of `load`. Spark passes a list as JSON in `paths`."""
        if several := self._text("paths", ""):
            return tuple(json.loads(several))
        path = self._text("path", "")
        return (path,) if path else ()

    def flag(self, name: str, default: str) -> bool:
        """Return False only for the text "false"."""
        return self._text(name, default).lower() != "false"

    def max_records_per_batch(self) -> int | None:
        """Return the limit of a batch of a stream, or None. Raise BadOption if it is invalid."""
        text = self._text("maxRecordsPerBatch", "")
        if text and (not text.isdecimal() or int(text) < 1):
            raise BadOption(f"maxRecordsPerBatch is {text!r}: it must be a number above 0")
        return int(text) if text else None

    def _one_of(self, name: str) -> str:
        allowed = VALUES[name]
        value = self._text(name, allowed[0])
        if value not in allowed:
            named = ", ".join(each for each in allowed if each)
            raise BadOption(f"{name} is {value!r}: it must be one of {named}")
        return value

    def _slice_bytes(self) -> int:
        text = self._text("sliceBytes", str(SLICE_BYTES))
        if not text.isdecimal() or not MIN_SLICE_BYTES <= int(text) <= MAX_SLICE_BYTES:
            raise BadOption(
                f"sliceBytes is {text!r}: it must be a number from {MIN_SLICE_BYTES} to "
                f"{MAX_SLICE_BYTES}"
            )
        return int(text)

    def _text(self, name: str, default: str) -> str:
        return str(
            {key.lower(): value for key, value in self.given.items()}.get(name.lower(), default)
        )
