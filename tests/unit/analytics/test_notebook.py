"""All cells of docs/history.ipynb, also those with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.notebook import cells, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]


def test_every_cell_shows_what_it_makes(spark: SparkSession) -> None:
    ran = list(run(with_spark=True))
    assert len(ran) == len(cells())
    for each in ran:
        assert each.made == each.stored, each.source
