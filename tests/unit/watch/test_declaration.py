"""Every metric is declared in a table, has a name that Prometheus' linter accepts, and is
bounded."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorate.broker.metrics import replica_table, service_table
from quorate.broker.metrics.scrape import of_hosted
from quorate.quorum.node.controller import controller_metric_table
from quorate.quorum.watch import metric_table
from quorate.quorum.watch.declaration import Declaration, declared
from tests.docs import metrics as page
from tests.unit.watch.node import create_topic, running, until
from tests.unit.watch.promlint import problems

pytestmark = pytest.mark.timeout(60)
TABLES = (metric_table, controller_metric_table, replica_table, service_table)
ONLY_IF_CONFIGURED = (
    "quorate_tls_",
    "kafka_server_socket_server_metrics_",
    "quorate_broker_authorizer_",
    "quorate_controller_authorizer_",
    "quorate_oauthbearer_",
)
PROMTOOL = shutil.which("promtool")
OF_THE_PROCESS = ("process_", "python_")


def declarations() -> Iterator[Declaration]:
    return chain.from_iterable(declared(each) for each in TABLES)


async def test_a_scrape_has_the_declared_metrics_and_passes_the_linter(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        await create_topic(node, "orders", 3)
        await until(lambda: len(node.broker.replicas.registry) == 3)
        text = (await node.get("/metrics")).body.decode()
        shown = [list(of_hosted(node.broker.replicas, bound)) for bound in (0, 2)]
    kinds = {each.name: each.type for each in text_string_to_metric_families(text)}
    known = {each.name.removesuffix("_total"): each.kind for each in declarations()}
    assert {
        name: kind for name, kind in kinds.items() if not name.startswith(OF_THE_PROCESS)
    }.items() <= known.items()
    assert [
        name for name in known if name not in kinds and not name.startswith(ONLY_IF_CONFIGURED)
    ] == []
    assert problems(text) == []
    for bound, families in zip((0, 2), shown, strict=True):
        samples = {each.name: each.samples for each in families}
        assert len(samples["kafka_log_log_size"]) == bound
        (left_out,) = samples["quorate_metrics_left_out_partitions"]
        assert left_out.value == 3 - bound
        (count,) = samples["kafka_server_replicamanager_partitioncount"]
        assert count.value == 3
        assert len(samples["kafka_server_brokertopicmetrics_bytesin"]) == 1 + min(bound, 1)


@pytest.mark.tools
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
async def test_promtool_accepts_a_scrape(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        await create_topic(node, "orders", 3)
        text = (await node.get("/metrics")).body
    pipe = asyncio.subprocess.PIPE
    tool = await asyncio.create_subprocess_exec(
        PROMTOOL or "", "check", "metrics", stdin=pipe, stdout=pipe, stderr=pipe
    )
    out, err = await tool.communicate(text)
    assert (tool.returncode, (out + err).decode()) == (0, "")


def test_no_metric_is_declared_twice() -> None:
    names = [each.name for each in declarations()]
    assert len(names) == len(set(names))
    assert [each.name for each in declarations() if not each.help.endswith(".")] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# HELP a_ms H.\n# TYPE a_ms gauge\na_ms 1\n", "a_ms: an abbreviated unit"),
        (
            "# HELP a H.\n# TYPE a gauge\na 1\n# HELP a H.\n# TYPE a gauge\n",
            "a: has two HELP lines",
        ),
        ("# HELP a_count H.\n# TYPE a_count gauge\na_count 1\n", "ends like a sample"),
        ('# HELP a H.\n# TYPE a gauge\na{logDir="x"} 1\n', "label logDir is camelCase"),
        ("# TYPE a gauge\na 1\n", "no help text"),
    ],
)
def test_the_linter_finds_problems(text: str, problem: str) -> None:
    assert any(problem in each for each in problems(text))


def test_the_page_is_fresh() -> None:
    assert page.PAGE.read_text() == page.page(), "docs/metrics.md is stale: run `make docs`"
