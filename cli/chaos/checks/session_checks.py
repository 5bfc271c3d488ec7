"""The checks of a silent broker: the length of its session, and its refusals. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected

NOT_LEADER = frozenset({"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"})
"""The errors with which a broker says that it does not lead. A timeout or a lost connection says
nothing about that."""


def session(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each expired session: its length is near broker.session.timeout.ms.

    The time from the last heartbeat to the fencing may differ by `expiry_tolerance_ms`."""
    tolerance_ms = expected.expiry_tolerance_ms
    for expiry in evidence.expiries:
        good = abs(expiry.after_ms - expiry.timeout_ms) <= tolerance_ms
        text = (
            f"broker {expiry.node} was fenced {expiry.after_ms:,} ms after its last heartbeat "
            f"({expiry.cause}; broker.session.timeout.ms is {expiry.timeout_ms:,}, tolerance "
            f"{tolerance_ms:,} ms)"
        )
        yield Check("session", good, text)


def refused(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each pinned client: its broker refused writes when it did not lead.

    The broker must have acknowledged no late batch (`Pinned.late`). It must have answered at least
    one batch, sent while another broker led, with an error of NOT_LEADER."""
    for pinned in evidence.pinned:
        late = pinned.late(evidence.leadership)
        refusals = pinned.refusals_without_lead(evidence.leadership)
        clear = [each for each in refusals if each.error in NOT_LEADER]
        errors = ", ".join(f"{count:,} x {name}" for name, count in sorted(pinned.refused.items()))
        text = (
            f"broker {pinned.node}, while it did not lead, acknowledged {len(late):,} batches of "
            f"the client that wrote only to it, and refused {len(clear):,} as not the leader "
            f"(all its errors: {errors or 'none'})"
        )
        yield Check("refused", not late and bool(clear), text)
