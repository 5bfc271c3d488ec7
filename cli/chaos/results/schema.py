"""The JSON Schema of a result, which `quorate chaos schema` prints. Pure.

It describes the JSON of one run. `chaos run all` writes an array of such results. A scenario that
was refused has the object `not_run` of `$defs` in its place."""

from __future__ import annotations

from typing import Any

from quorate.cli.chaos.checks.evidence import PHASES
from quorate.cli.chaos.results.result import SCHEMA_VERSION

INTEGER: dict[str, Any] = {"type": "integer"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
MEASURED: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
"""A number that is null if it was not measured."""
TEXT: dict[str, Any] = {"type": "string"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def counts(about: str, values: dict[str, Any] = COUNT) -> dict[str, Any]:
    """Return the schema of an object whose values are counts."""
    return {"type": "object", "additionalProperties": values, "description": about}


def record(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def said(schema: dict[str, Any], about: str) -> dict[str, Any]:
    """Return a schema with a description."""
    return {**schema, "description": about}


CHECK = record(
    name=said(TEXT, "The name of the check, as in `quorate chaos describe`."),
    good=BOOLEAN,
    text=said(TEXT, "The result with its numbers and reasons."),
)
NOT_JUDGED = record(name=TEXT, reason=TEXT)
FAULT = record(
    kind=said(TEXT, "The kind of the fault, such as kill, pause or full disk."),
    node=COUNT,
    role=said(TEXT, "The node's role when the fault began, such as broker and active controller."),
    start_ms=COUNT,
    end_ms=COUNT,
    affected=said(COUNT, "Ended or stopped processes, or affected frames and connects."),
    effect=TEXT,
    led=said(COUNT, "The partitions that the node led when the fault began."),
)
SESSION = record(
    node=COUNT,
    timeout_ms=said(COUNT, "broker.session.timeout.ms."),
    last_heartbeat_ms=INTEGER,
    fenced_ms=COUNT,
    cause=TEXT,
    after_ms=said(INTEGER, "The time from the last heartbeat to the fencing."),
)
EVENT = record(ms=COUNT, what=TEXT, node={"type": ["integer", "null"]}, cause=TEXT)
AVAILABILITY = record(
    longest_write_ms=MEASURED, longest_read_ms=MEASURED, longest_metadata_ms=MEASURED
)

SUMMARY = record(count=COUNT, p50=MEASURED, p99=MEASURED, max=MEASURED)
BY_PHASE = said(record(**dict.fromkeys(PHASES, SUMMARY)), "By phase, in relation to the faults.")
LATENCY = record(write=BY_PHASE, read=BY_PHASE, metadata=BY_PHASE)

NOT_RUN = record(
    schema_version={"const": SCHEMA_VERSION},
    scenario=TEXT,
    verdict={"const": "refused"},
    reason=said(TEXT, "The rule that the cluster breaks, and the remedy."),
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Result of `quorate chaos run`",
    "description": "Times in ms are since the start of the run, unless a description differs.",
    **record(
        schema_version={"const": SCHEMA_VERSION},
        scenario=TEXT,
        variants=array(TEXT),
        verdict={"enum": ["good", "bad"]},
        checks=array(CHECK),
        not_judged=said(array(NOT_JUDGED), "The checks without evidence on this cluster."),
        faults=array(FAULT),
        sent=said(COUNT, "Records sent, acknowledged or not."),
        acknowledged=COUNT,
        read=said(COUNT, "Records read at the end."),
        read_along=said(COUNT, "Records that the consumer read during the run."),
        lost=said(COUNT, "Acknowledged records that are missing at the end."),
        unverified=said(COUNT, "Acknowledged records in partitions that could not be read."),
        duplicated=COUNT,
        out_of_order=COUNT,
        changed=said(COUNT, "Records with another value, or at another offset."),
        refused=counts("The errors that pinned clients received, by name."),
        sessions=array(SESSION),
        truncated=said(COUNT, "Records that only a broker with a pinned client had."),
        batches=counts("Acknowledged batches before the faults, while one lasted, and after them."),
        availability=said(
            AVAILABILITY, "The longest waits of clients. null: no such client was served or waited."
        ),
        latency_ms=said(LATENCY, "The latencies of clients in ms. null: there were none."),
        leader_moves=said(
            MEASURED, "New leaders of partitions, or times without one. null: none was observed."
        ),
        isr_shrinks=said(
            MEASURED, "The times that an ISR lost a replica. null: no partition was observed."
        ),
        unavailable_ms=counts(
            "The total time without writes, by partition. null: no client wrote.", MEASURED
        ),
        seed=said(COUNT, "The seed of all random choices of the run."),
        started_wall_ms=said(COUNT, "The start of the run, in ms since 1970 UTC."),
        duration_ms=COUNT,
        left_behind=said(array(TEXT), "Things that the run could not remove."),
        timeline=array(EVENT),
    ),
    "$defs": {
        "not_run": said(NOT_RUN, "A scenario of `chaos run all` that the cluster cannot run.")
    },
}
