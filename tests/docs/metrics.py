"""The page docs/metrics.md, made from the tables of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from quorate.broker.metrics import replica_table, service_table
from quorate.quorum.node.controller import controller_metric_table
from quorate.quorum.watch import metric_table
from quorate.quorum.watch.declaration import declared

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
SECTIONS = {
    "Every node": metric_table,
    "Controllers": controller_metric_table,
    "Brokers: state, replicas and traffic": replica_table,
    "Brokers: requests, groups and logs": service_table,
}
HEAD = """# Metrics

Every node serves `/metrics` on the port that other nodes use.
`make docs` writes this page from the tables of metrics in the code.

A metric that Kafka also has is named as jmx_exporter names Kafka's, in lower case.
Names follow the rules of `promtool check metrics`.
Metrics of TLS, SASL and authorizers exist only on nodes that have these.

`metrics.per.partition` (1000 by default) bounds the samples of one broker.
It is the number of partitions, of topics and of groups that have samples of their own.
The first ones by name are chosen.
Sums for the broker always cover everything.
"""


def page() -> str:
    """Return the page."""
    return HEAD + "".join(
        line + "\n" for name, table in SECTIONS.items() for line in _section(name, table)
    )


def _section(name: str, table: ModuleType) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield "| metric | type | labels | meaning |"
    yield "|---|---|---|---|"
    for each in declared(table):
        labels = ", ".join(f"`{label}`" for label in each.labels)
        yield f"| `{each.name}` | {each.kind} | {labels} | {each.help} |"
