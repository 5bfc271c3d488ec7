"""The comparison of results: did the second build get worse? Pure, except for the files.

A number is worse if it is higher by more than both TOLERANCE_SHARE and its own tolerance. Times of
single runs vary with the machine, so small differences say nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from quorate.cli.chaos.results.result import SCHEMA_VERSION
from quorate.cli.client.errors import Refused
from quorate.cli.parsing.described_argument import Decorator, DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo

TOLERANCE_SHARE = 0.25
"""The share by which a time may grow, in addition to its tolerance."""
NOT_JUDGED = "not judged"
REFUSED = "refused"
"""The verdict of a scenario that its cluster cannot run."""
MAX_FILE_BYTES = 64 << 20
NUMBERS: Mapping[str, tuple[str, int]] = {
    "lost": ("records lost", 0),
    "unverified": ("records unverified", 0),
    "duplicated": ("records duplicated", 0),
    "out_of_order": ("records out of order", 0),
    "changed": ("records changed", 0),
    "availability.longest_write_ms": ("longest wait of a write, ms", 500),
    "availability.longest_read_ms": ("longest wait of the consumer, ms", 500),
    "latency_ms.write.during.p99": ("p99 of writes during the faults, ms", 500),
    "latency_ms.write.after.p99": ("p99 of writes after the faults, ms", 100),
    "availability.longest_metadata_ms": ("longest wait of a metadata change, ms", 500),
}
"""The compared numbers by their path in the JSON: their names and their tolerances."""
MEASURED = frozenset({"availability", "latency_ms"})
"""The keys whose numbers are null if a run did not measure them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One compared fact of two results."""

    name: str
    before: str
    after: str
    worse: bool


def result_argument(name: str, description: str) -> Decorator:
    """Return a positional argument for the file of a result."""
    return click.argument(
        name,
        cls=DescribedArgument,
        description=description,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
    )


@click.command(cls=StrictCommand)
@result_argument("before", "The result to compare with.")
@result_argument("after", "The result that may be worse.")
def compare(before: Path, after: Path) -> None:
    """Compare the JSON results BEFORE and AFTER. Did it get worse?

    The files are those of `chaos run --json FILE`, or the output of `--format json`, also of `run
    all`: results are compared by scenario. A scenario that AFTER lacks, or that was refused there,
    is worse if it ran in BEFORE. The exit status is 1 if AFTER is worse."""
    was, now = load(before), load(after)
    found = by_scenario(was, now)
    for scenario, each in found.items():
        if len(found) > 1:
            echo(scenario)
        for line in lines(each):
            echo(line)
    worse = [name for name, each in found.items() if any(fact.worse for fact in each)]
    if len(found) > 1:
        echo(f"worse: {len(worse)} of {len(found)} scenarios{': ' * bool(worse)}{', '.join(worse)}")
    echo(f"{after} is {'worse than' if worse else 'not worse than'} {before}")
    raise SystemExit(1 if worse else 0)


def lines(found: Sequence[Difference]) -> Iterator[str]:
    """Yield the lines of the compared facts."""
    for each in found:
        mark = "WORSE" if each.worse else "same" if each.before == each.after else ""
        yield f"{mark:>6}  {each.name:<40} {each.before:>12} -> {each.after}"


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Return the results in a file by their scenarios. Raise Refused if it holds anything else than
    results of SCHEMA_VERSION, or two of one scenario."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Refused(f"{path}: more than {MAX_FILE_BYTES:,} bytes")
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: not JSON: {error}") from None
    results: dict[str, dict[str, Any]] = {}
    for each in found if isinstance(found, list) else [found]:
        if not isinstance(each, dict) or each.get("schema_version") != SCHEMA_VERSION:
            raise Refused(
                f"{path}: this is no result of `quorate chaos run` with schema_version "
                f"{SCHEMA_VERSION}"
            )
        scenario = str(each.get("scenario"))
        if scenario in results:
            raise Refused(f"{path}: there are two results of {scenario}")
        results[scenario] = each
    if not results:
        raise Refused(f"{path}: there is no result")
    return results


def by_scenario(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[Difference]]:
    """Return the compared facts of each scenario of two files. Raise Refused as `differences`."""
    found = {}
    for scenario in dict.fromkeys((*before, *after)):
        was, now = before.get(scenario), after.get(scenario)
        if was is not None and now is not None and ran(was) and ran(now):
            found[scenario] = differences(was, now)
            continue
        lacks = was is not None and ran(was) and not (now is not None and ran(now))
        found[scenario] = [Difference("verdict", verdict(was), verdict(now), lacks)]
    return found


def ran(result: Mapping[str, Any]) -> bool:
    """Return True if the scenario was run, and not refused."""
    return result.get("verdict") != REFUSED


def verdict(result: Mapping[str, Any] | None) -> str:
    """Return the verdict as text, with the reason of a refusal."""
    if result is None:
        return "missing"
    found = str(result.get("verdict"))
    return found if ran(result) else f"{found}: {result.get('reason')}"


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return the compared facts of two results: the verdict, each check, and NUMBERS.

    Raise Refused if the results are of different scenarios or variants, or lack a fact."""
    try:
        for key in ("scenario", "variants"):
            if before[key] != after[key]:
                raise Refused(f"the results differ in {key}: {before[key]} and {after[key]}")
        return [
            Difference(
                "verdict",
                before["verdict"],
                after["verdict"],
                before["verdict"] == "good" and after["verdict"] != "good",
            ),
            *checks(before, after),
            *(
                numbers(path, name, tolerance, before, after)
                for path, (name, tolerance) in NUMBERS.items()
            ),
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(f"a result is not complete: {type(error).__name__}: {error}") from None


def checks(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return the checks whose results differ. A check that disappears is worse, unless the cluster
    of the second run gives no evidence for it, as one of a nodes.toml."""
    was, now = results(before), results(after)
    return [
        Difference(f"check {name}", was.get(name, "-"), now.get(name, "-"), worse)
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
        for worse in [
            now.get(name) == "bad" or (was.get(name) == "good" and now.get(name) != NOT_JUDGED)
        ]
    ]


def results(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the checks by name: "bad" if one of this name is bad, else "good"; or NOT_JUDGED."""
    found: dict[str, str] = {each["name"]: NOT_JUDGED for each in result["not_judged"]}
    for check in result["checks"]:
        good = check["good"] and found.get(check["name"]) != "bad"
        found[check["name"]] = "good" if good else "bad"
    return found


def numbers(
    path: str, name: str, tolerance: int, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Difference:
    """Return the comparison of one number.

    A number that one of the runs did not measure is not worse. A check says why it is missing."""
    was, now = at(before, path), at(after, path)
    worse = False
    if was is not None and now is not None:
        worse = now - was > max(tolerance, TOLERANCE_SHARE * was if tolerance else 0)
    return Difference(name, shown(was), shown(now), worse)


def shown(number: int | None) -> str:
    """Return a number as text."""
    return "unknown" if number is None else f"{number:,}"


def at(result: Mapping[str, Any], path: str) -> int | None:
    """Return the number at a path of keys, or None if the run did not measure it.

    Raise KeyError or TypeError if there is neither."""
    found: Any = result
    for key in path.split("."):
        found = found[key]
    if found is None and path.partition(".")[0] in MEASURED:
        return None
    if type(found) is not int:
        raise TypeError(f"{path}: value {found!r} must be a whole number")
    return found
