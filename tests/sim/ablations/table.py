"""All safeguards by name, and their table in tests/sim/README.md."""

from __future__ import annotations

from pathlib import Path

from tests.sim.ablations import (
    compaction,
    directories,
    features,
    identities,
    lost_quorum,
    partitions,
    permissions,
    quorum,
    quotas,
    storage,
    tokens,
    untrusted,
)
from tests.sim.ablations.ablation import Ablation

ABLATIONS: dict[str, Ablation] = {
    each.name: each
    for table in (
        quorum,
        lost_quorum,
        partitions,
        storage,
        directories,
        features,
        compaction,
        untrusted,
        quotas,
        permissions,
        identities,
        tokens,
    )
    for each in table.ABLATIONS
}
README = Path(__file__).parents[1] / "README.md"
HEAD = "| `SAFEGUARD=` | rule | replaced | seed or scenario | part of the message of the failure |"


def rows() -> list[str]:
    return [
        HEAD,
        "|---|---|---|---|---|",
        *(
            f"| {each.name} | {each.safeguard} | `{each.replaced}` | {each.story.name} "
            f"| {each.caught} |"
            for each in ABLATIONS.values()
        ),
    ]


def rows_in_readme() -> list[str]:
    lines = README.read_text().splitlines()
    first = lines.index(HEAD)
    length = next(
        (i for i, line in enumerate(lines[first:]) if not line.startswith("|")),
        len(lines) - first,
    )
    return lines[first : first + length]
