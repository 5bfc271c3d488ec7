"""The times of `consumer-groups --reset-offsets`."""

from __future__ import annotations

from typing import cast

import pytest

from quorate.cli.groups.resets import target_of
from quorate.cli.log_ends import LogEnds

SCENARIOS = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "from_file",
)


class Log:
    """A partition with the offsets 10 to 19, whose records are of the year 2020."""

    def at(self, place: object, time_ms: int) -> int:
        assert time_ms >= 0, "negative values have a meaning of their own in ListOffsets"
        return 10


@pytest.mark.parametrize(
    "scenario",
    [{"to_datetime": "1969-12-31T23:59:59.999Z"}, {"by_duration": "P30000D"}],
    ids=["to_datetime", "by_duration"],
)
def test_a_time_before_1970_is_the_beginning(scenario: dict[str, str]) -> None:
    """The last millisecond of 1969 is -1, which means the latest offset in a request."""
    target = target_of({**dict.fromkeys(SCENARIOS), **scenario})
    assert target is not None
    assert target(("t", 0), None, cast(LogEnds, Log())) == 10
