"""The fixture: a metadata log of a real Apache Kafka, and its dump by Kafka's own tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kafka-4.1.1-metadata"
C1 = FIXTURE / "c1"
LOG = C1 / "00000000000000000000.log"
CHECKPOINTS = sorted(C1.glob("*.checkpoint"))
HISTORY = json.loads((FIXTURE / "history.json").read_text())
BEFORE_SHUTDOWN = 369
"""The last offset before the brokers were shut down in order: where `final` holds."""

PAYLOAD = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .* payload: (\{.*\})$")


def dumped(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Return (offset, timestamp, {type, version, data}) of each record in Kafka's dump of
    `path`."""
    for line in path.with_name(path.name + ".dump.txt").read_text().splitlines():
        if match := PAYLOAD.match(line):
            yield int(match[1]), int(match[2]), json.loads(match[3])
