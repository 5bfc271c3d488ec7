"""Apache Kafka's own StandardAuthorizer, asked what Quorate's authorizer is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.kafka.tools import TOOL_TIMEOUT_S, libs, missing
from tests.unit.authorization.cases import answers, random_case

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PROGRAM = Path(__file__).parent / "AclDecisions.java"


def test_decisions_and_filters_are_those_of_kafka() -> None:
    """1,000 random sets of ACLs."""
    random = Random(2026)
    cases = [random_case(random) for _ in range(1000)]
    lines = [line for case in cases for line in case.lines()]
    ran = subprocess.run(
        ["java", "-cp", f"{libs()}/*", str(PROGRAM)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=True,
    )
    theirs = iter(ran.stdout.splitlines())
    compared = 0
    for case in cases:
        for question, ours in zip(case.questions, answers(case), strict=True):
            assert ours == next(theirs), (case, question)
            compared += 1
    assert compared > 50_000 and next(theirs, None) is None
