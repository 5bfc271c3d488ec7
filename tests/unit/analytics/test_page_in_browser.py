"""The page as a browser shows it, at three widths. Skipped if the machine has no Chromium."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.quorum.analytics.page.page import render
from tests.unit.analytics.browser import VARIABLE, find_browser, look_at
from tests.unit.analytics.test_page import FIGURES, WARNED, history

BROWSER = find_browser()
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(BROWSER is None, reason=f"no headless Chromium in PATH or {VARIABLE}"),
    pytest.mark.timeout(240),
]
WIDTHS = (360, 800, 1600)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_reads_and_zooms(width: int, dark: bool) -> None:
    assert BROWSER is not None
    figures = replace(FIGURES, partitions=60, errors=1, notes=1)
    page = render(history(60, figures=figures, warnings=WARNED))
    seen = look_at(page, BROWSER, width, dark=dark)
    assert seen["problems"] == []
    assert seen["overflow"] == 0
    assert seen["ground"] == ("rgb(21, 23, 26)" if dark else "rgb(251, 251, 250)")
    assert seen["contrasts"] == []
    assert seen["plain"]["ticks"] >= 2
    assert seen["cut"] == 0, "labels of the axis are whole"
    zoomed = seen["zoomed"]
    assert zoomed["ticks"] >= 2, "the axis has labels in the visible part"
    assert zoomed["brokers"] == seen["plain"]["brokers"] >= 2, "lanes of the brokers stay"
    assert zoomed["labels"] > zoomed["brokers"], "lanes have their names"
    assert seen["worst"] >= 1, "the worst partition of the table has a lane"
    assert (seen["nothing"], seen["said"]) == (0, True), "an empty chart says why"
