"""The histories find missing safeguards: without one named safeguard, a named history breaks an
invariant.

Each history also runs with unchanged production code, and then it must pass.
"""

from __future__ import annotations

import re

import pytest

from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import BROKEN, Story, said
from tests.sim.ablations.table import ABLATIONS, rows, rows_in_readme

STORIES: dict[str, Story] = {each.story.name: each.story for each in ABLATIONS.values()}


@pytest.mark.parametrize("ablation", ABLATIONS.values(), ids=str)
def test_without_it_the_history_breaks(ablation: Ablation) -> None:
    with ablation.in_force(), pytest.raises(BROKEN) as raised:
        ablation.story.tell()
    assert ablation.caught and re.search(re.escape(ablation.caught), said(raised.value)), (
        f"`python -m tests.sim.ablations find {ablation.name}` looks for another seed"
    )


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_with_all_of_them_it_does_not(story: Story) -> None:
    story.tell()


def test_the_table_says_what_is_tested() -> None:
    assert rows_in_readme() == rows(), "`python -m tests.sim.ablations table` prints it"
    assert len(ABLATIONS) >= 25
