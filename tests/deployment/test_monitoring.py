"""The alert rules and dashboards ask for metrics that a running node has, and each alert has a
runbook whose commands exist."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from quorate.cli.main import main
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.headers import request_header
from quorate.quorum.watch.declaration import declared
from tests.deployment import promql
from tests.deployment.files import COMPOSE, DEPLOYMENT, ROOT
from tests.docs import dashboards
from tests.ports.requests import produced
from tests.unit.rpc.kafka.fakes import FakeLink
from tests.unit.watch.node import create_topic, running, until
from tests.unit.watch.test_declaration import TABLES

RULES = [
    rule
    for group in yaml.safe_load((DEPLOYMENT / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDS = {rule["record"] for rule in RULES if "record" in rule}
BOARDS = {path.stem: json.loads(path.read_text()) for path in dashboards.files()}
RUNBOOKS = ROOT / "docs" / "runbooks"
HEADINGS = ["Meaning", "First look", "Likely causes", "Remedies"]
OF_PROMETHEUS = {"up"}
OF_TARGETS = {"job", "instance", "node_id", "role"}
"""The labels that Prometheus adds, from its config and from /v1/targets."""
REQUESTS_OF_OTHERS = {"Fetch", "JoinGroup", "OffsetCommit"}
"""Values of the label `request` that the work of the test has none of. All are names of APIs."""


def expressions() -> dict[str, str]:
    """Return all expressions by their place."""
    found = {rule.get("alert") or rule["record"]: rule["expr"] for rule in RULES}
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                key = f"{name}: {panel['title']} {target['refId']}"
                found[key] = target["expr"]
    return found


EXPRESSIONS = expressions()
Scrape = dict[str, list[dict[str, str]]]
SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}
"""The ends of the names of samples, by the type of their metric."""
CONFIGURED = ("quorate_tls_", "quorate_oauthbearer_")
"""The prefixes of the metrics of listeners that the scraped node does not have."""
DECLARED = {each.name: each for table in TABLES for each in declared(table)}


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory) -> Scrape:
    """The labels of the samples of a real node with both roles, by the name of the sample, which
    may have none. Those of CONFIGURED come from their declarations."""
    text = asyncio.run(scraped(tmp_path_factory.mktemp("node") / "node"))
    found: Scrape = {}
    for family in text_string_to_metric_families(text):
        for suffix in SUFFIXES.get(family.type, ("",)):
            found[family.name + suffix] = []
        for sample in family.samples:
            found[sample.name].append(dict(sample.labels))
    return found | {name: [] for name in DECLARED if name.startswith(CONFIGURED)}


async def scraped(directory: Path) -> str:
    """Return /metrics of a node that has appended a batch for a client."""
    async with running(directory) as node:
        await create_topic(node, "orders", 3)
        await until(lambda: len(node.broker.replicas.registry) == 3)
        await until(lambda: node.broker.running)
        (port,) = node.broker.client_ports
        connection = port.accept(FakeLink())
        topic_id = node.core.image.topic_id("orders")
        assert topic_id is not None
        body = encode(produced("orders", topic_id), 9)
        connection.on_frame(memoryview(request_header(ApiKey.PRODUCE, 9, 1, "me", 2) + body))
        return (await node.get("/metrics")).body.decode()


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_every_metric_of_an_expression_is_in_a_scrape(place: str, scrape: Scrape) -> None:
    expression = EXPRESSIONS[place]
    names = promql.metrics(expression)
    assert names, expression
    assert names <= {*scrape, *RECORDS, *OF_PROMETHEUS}
    for name, label, value in promql.matchers(expression):
        if name in OF_PROMETHEUS or (label == "request" and value in REQUESTS_OF_OTHERS):
            continue
        assert value in {each.get(label) for each in scrape[name]}, (name, label, value)


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_every_label_of_an_expression_is_one_of_its_metrics(place: str) -> None:
    expression = EXPRESSIONS[place]
    known = OF_TARGETS | {"le"}
    for name in promql.metrics(expression):
        if name in RECORDS:
            known |= {"group", "topic", "partition"}
        elif name in DECLARED or base(name) in DECLARED:
            known |= set((DECLARED.get(name) or DECLARED[base(name)]).labels)
    assert promql.labels(expression) <= known


def base(name: str) -> str:
    """Return the name of the histogram or summary that a sample belongs to."""
    return re.sub("_(bucket|sum|count)$", "", name)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_runbook(rule: dict[str, Any]) -> None:
    name = rule["alert"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["runbook"] == f"docs/runbooks/{name}.md"
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert re.findall(r"^# (.*)$", text, re.MULTILINE) == [name]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    for link in re.findall(r"\]\(([^)]*)\)", text):
        assert (RUNBOOKS / link).exists(), link


def test_every_runbook_has_an_alert() -> None:
    names = {rule["alert"] for rule in ALERTS}
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {*names, "README"}
    index = (RUNBOOKS / "README.md").read_text()
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == names


COMMANDS = sorted(
    {
        line
        for path in RUNBOOKS.glob("*.md")
        for line in re.findall(r"^quorate .*$", path.read_text(), re.MULTILINE)
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_runbooks_exist(line: str) -> None:
    refuse_unless_parsed(line)


def refuse_unless_parsed(line: str) -> None:
    """Parse a command line without running it. Raise a UsageError if a command or an option does
    not exist, or a required one is missing."""
    arguments = shlex.split(line)[1:]
    command: click.Command = main
    while True:
        context = click.Context(command, **main.context_settings)
        values, rest, _ = command.make_parser(context).parse_args(arguments)
        for parameter in command.params:
            if parameter.required and values.get(str(parameter.name)) is None:
                raise click.MissingParameter(param=parameter)
        if not isinstance(command, click.Group):
            return
        name, found, arguments = command.resolve_command(context, rest)
        assert found is not None, name
        command = found


@pytest.mark.parametrize(
    "line",
    [
        "quorate statuses",
        "quorate status --server b1:9092",
        "quorate cluster unregister",
        "quorate certs node --dir x --host y name",
    ],
)
def test_a_wrong_command_is_noticed(line: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        refuse_unless_parsed(line)


def test_the_dashboards_are_fresh() -> None:
    for path, text in dashboards.files().items():
        assert path.read_text() == text, f"{path.name} is stale: run `make docs`"
    assert {path.name for path in dashboards.FOLDER.iterdir()} == {
        f"{each}.json" for each in BOARDS
    }


def test_compose_mounts_the_rules_and_the_dashboards() -> None:
    prometheus, grafana = (COMPOSE["services"][each] for each in ("prometheus", "grafana"))
    mounted = dict(each.split(":")[:2] for each in (*prometheus["volumes"], *grafana["volumes"]))
    assert all((ROOT / each).exists() for each in mounted)
    config = yaml.safe_load((DEPLOYMENT / "prometheus.yml").read_text())
    (rules,) = config["rule_files"]
    assert mounted[f"./config/deployment/{rules}"] == f"/etc/prometheus/{rules}"
    sources = {each["source"]: each["target"] for each in grafana["configs"]}
    assert set(sources) == set(COMPOSE["configs"])
    (provider,) = yaml.safe_load(COMPOSE["configs"]["grafana-dashboards"]["content"])["providers"]
    assert provider["options"]["path"] == mounted["./config/deployment/dashboards"]


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    """`test_promtool_accepts_the_rules_and_the_dashboards` runs the cases."""
    alerts = {each["alert"] for each in ALERTS}
    tests = yaml.safe_load((Path(__file__).parent / "alerts_test.yml").read_text())["tests"]
    cases = [each for test in tests for each in test["alert_rule_test"]]
    assert {each["alertname"] for each in cases if each["exp_alerts"]} == alerts
    quiet = {each["alertname"] for each in cases if not each["exp_alerts"]}
    assert alerts - quiet == set()


@pytest.mark.tools
def test_promtool_accepts_the_rules_and_the_dashboards(tmp_path: Path) -> None:
    """`promtool test rules` also lets some alerts fire."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    shown = [{"record": "a:b", "expr": each} for each in EXPRESSIONS.values()]
    text = yaml.safe_dump({"groups": [{"name": "dashboards", "rules": shown}]})
    (tmp_path / "shown.yml").write_text(text.replace("$__rate_interval", "5m"))
    for *command, path in (
        ("check", "rules", DEPLOYMENT / "alerts.yml"),
        ("check", "config", DEPLOYMENT / "prometheus.yml"),
        ("check", "rules", "--lint=none", tmp_path / "shown.yml"),
        ("test", "rules", Path(__file__).parent / "alerts_test.yml"),
    ):
        done = subprocess.run([promtool, *command, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
