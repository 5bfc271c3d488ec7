"""Decisions that take more than one step.

The work of most decisions is short: a rule returns a `Result`. The work of some grows with the
partitions of one broker, or with the items of a request. Such a rule is a generator. It pauses with
`yield records` after at most STEP_RECORDS records. The caller appends and replays these records as
one batch, runs the event loop, and resumes the generator. It makes no other decision in between.

- Invariant: between two steps the image changes only by the records that the rule has yielded.
- Records that must be in one batch are in the final `Result`. A rule whose records must all be in
  one batch only pauses, with `yield None`.
- If leadership is lost, the generator is dropped. The records that it has yielded may be committed
  then, so each group of them must be a valid change by itself.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from quorate.quorum.controller.state.result import Result
from quorate.quorum.metadata.records import MetadataRecord

STEP_RECORDS = 200
"""The number of records that a rule prepares in one step. A step takes about 10 ms with their
encoding and their replay."""

Step = Sequence[MetadataRecord] | None
"""The records of one batch, or None for a pause without records."""
RecordSteps = Generator[Step, None, list[MetadataRecord]]
"""Yields batches of records. The result is the records of the last batch."""
DecisionSteps = Generator[Step, None, Result]
"""Yields batches of records and pauses. The result has the records of the last batch, and the
response."""
Outcome = Result | DecisionSteps
"""The outcome of a rule: complete, or in steps."""


def begun(steps: DecisionSteps) -> Outcome:
    """Run the first step. Return the result if that completes the decision, or else the steps, of
    which the first returns immediately."""
    try:
        first = next(steps)
    except StopIteration as end:
        result: Result = end.value
        return result
    return _resumed(first, steps)


def started(outcome: Outcome) -> Outcome:
    """Return a complete outcome as it is, and run the first step of any other."""
    return outcome if isinstance(outcome, Result) else begun(outcome)


def _resumed(first: Step, rest: DecisionSteps) -> DecisionSteps:
    yield first
    return (yield from rest)


def with_response(steps: RecordSteps, response: object) -> DecisionSteps:
    """Return the decision that has the records of `steps`, in several batches, and `response`."""
    records = yield from steps
    return Result(records, response, atomic=False)
