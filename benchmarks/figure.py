"""The results of benchmarks, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.machine import Limits


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `limit` names the field of `Limits` that bounds it, in the same unit."""

    name: str
    value: float
    unit: str
    limit: str | None = None
    more_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the output.

    A `ratio` above 1 means that Quorate is better. `of_limit` compares the value with the machine's
    limit in the same way: 1 means that the limit is reached. Both are None without a reference."""

    name: str
    value: float
    unit: str
    peer: float | None
    ratio: float | None
    of_limit: float | None


def rows(ours: Sequence[Figure], peer: Mapping[str, Figure], limits: Limits | None) -> list[Row]:
    """Return one row per figure, with the peer's figure of the same name."""
    return [row(figure, peer.get(figure.name), limits) for figure in ours]


def row(figure: Figure, peer: Figure | None, limits: Limits | None) -> Row:
    """Return the row of one figure."""
    ratio = of_limit = None
    if peer is not None and peer.value > 0 and figure.value > 0:
        ratio = better_by(figure.value, peer.value, figure.more_is_better)
    if limits is not None and figure.limit is not None and figure.value > 0:
        limit: float = getattr(limits, figure.limit)
        of_limit = better_by(figure.value, limit, figure.more_is_better)
    value = None if peer is None else peer.value
    return Row(figure.name, figure.value, figure.unit, value, ratio, of_limit)


def better_by(value: float, other: float, more_is_better: bool) -> float:
    """Return the factor by which `value` is better than `other`."""
    return value / other if more_is_better else other / value


def as_json(shown: Sequence[Row]) -> str:
    """Return one JSON object per line."""
    return "\n".join(json.dumps(asdict(row)) for row in shown)


def as_table(shown: Sequence[Row], peer_name: str) -> str:
    """Return an aligned table."""
    cells = [("figure", "quorate", "unit", peer_name, "ratio", "of machine")]
    cells += [
        (
            row.name,
            number(row.value),
            row.unit,
            number(row.peer),
            "" if row.ratio is None else f"{row.ratio:.2g} x",
            "" if row.of_limit is None else f"{row.of_limit:.0%}",
        )
        for row in shown
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 2) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def number(value: float | None) -> str:
    """Return a number as text, or "" for None.

    From 100 on it is a whole number, and below it has three significant digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value at `share` (0 to 1) of the sorted values, which must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
