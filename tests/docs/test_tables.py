"""docs/tables.md is the page that `make docs` writes, and explains every column."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.tables import TABLES, columns_in
from tests.docs.tables import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "docs/tables.md is stale: run `make docs`"


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_explained(name: str) -> None:
    assert columns_in(name)
    assert [column.name for column in columns_in(name) if not column.text] == []
