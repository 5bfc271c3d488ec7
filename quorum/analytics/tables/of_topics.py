"""The rows of the tables that are about some topics.

A partition record has the id of its topic and not its name. The ids of the topics are thus read
first, from the records that created them. With the ids, the data source leaves out the records of
other topics before it decodes them.

A table is only read this way if each of its rows depends on the records of one topic, on configs
and on brokers. The tables `sessions`, `brokers`, `quorum`, `quorum_health` and `warnings` are about
the whole cluster, so they are always complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

MAX_TOPIC_IDS = 10_000
"""The maximum number of topic ids that the data source compares. With more, it decodes all
records."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of some topics, and all ids that topics of these names had."""

    names: frozenset[str]
    ids: frozenset[str]

    def option(self) -> str:
        """Return the value of the data source's option `topicIds`, or "" if there are too many."""
        return ",".join(sorted(self.ids)) if len(self.ids) <= MAX_TOPIC_IDS else ""


def _named(topics: Topics) -> Column:
    return f.col("topic").isin(*topics.names)


def _named_or_with_id(topics: Topics) -> Column:
    return _named(topics) | f.col("topic_id").isin(*topics.ids)


def _resources(topics: Topics) -> Column:
    return (f.col("resource_type") == "topic") & f.col("resource_name").isin(*topics.names)


CONDITIONS: dict[str, Callable[[Topics], Column]] = {
    "records": _named_or_with_id,
    "topics": _named,
    "partitions": _named,
    "leadership": _named,
    "isr": _named,
    "elr": _named,
    "state_changes": _named,
    "availability": _named,
    "min_isr_windows": _named,
    "churn": _named,
    "reassignments": _named,
    "reassignment_steps": _named,
    "configs": _resources,
    "causes": _named,
}
"""For each table with rows about topics, the condition that a row is about one of the topics."""


def topics_in(rows: DataFrame, names: Collection[str]) -> Topics:
    """Return the topics with these names. Block for a job of Spark.

    `rows` are rows of the data source with all records of topics."""
    created = (f.col("type") == "TOPIC_RECORD") & f.col("effective") & f.col("remark").isNull()
    ids = rows.where(created & f.col("topic").isin(*names)).select("topic_id").distinct()
    found = ids.limit(MAX_TOPIC_IDS + 1).collect()
    return Topics(frozenset(names), frozenset(row["topic_id"] for row in found))
