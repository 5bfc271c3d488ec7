"""The check of the admin client's requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check, first
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected


def admin(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that each operation of the admin client succeeded, and soon enough.

    A request that never succeeded counts with the time until the end of the run."""
    found = evidence.admin
    if found is None:
        return
    allowed = expected.max_admin_wait_ms
    wrong = []
    for operation, requests in sorted(found.by_operation().items()):
        if all(each.done_ms is None for each in requests):
            wrong.append(f"no request succeeded: {operation}")
        longest = max(each.waited_ms(evidence.end_ms) for each in requests)
        if longest > allowed:
            wrong.append(f"{operation} waited {longest:,} ms (allowed: {allowed:,} ms)")
    never = [each for each in found.operations if each not in found.by_operation()]
    wrong += [f"never requested: {each}" for each in never]
    counted = ", ".join(
        f"{len(requests):,} x {operation}"
        for operation, requests in sorted(found.by_operation().items())
    )
    text = f"requests of the admin client: {counted}; none waited longer than {allowed:,} ms"
    yield Check("admin", not wrong, first(wrong, text))
