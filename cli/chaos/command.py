"""The commands of `quorate chaos`."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import click

from quorate.cli.chaos.loader import ScenarioError, bundled_scenarios, load
from quorate.cli.chaos.process_cluster import ProcessCluster
from quorate.cli.chaos.run import run_scenario
from quorate.cli.chaos.run_setup import Plan
from quorate.cli.chaos.scenario import STEPS, TABLES, Scenario, Variant
from quorate.cli.chaos.verdict import Result
from quorate.cli.chaos.view import View, verdict_lines
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import format_option
from quorate.cli.cluster_dir import alive
from quorate.cli.server import pair_of


@click.group()
def chaos() -> None:
    """Run failure scenarios on the processes of a real cluster, and check the outcome."""


@chaos.command("list")
@format_option
def list_(output: str) -> None:
    """List the scenarios that come with Quorate."""
    scenarios = [load(name) for name in bundled_scenarios()]
    if output == "json":
        rows = [
            {"name": each.name, "title": each.title, "variants": [v.name for v in each.variants]}
            for each in scenarios
        ]
        click.echo(json.dumps(rows))
        return
    for each in scenarios:
        click.echo(f"{each.name:<20}{each.title}")
        if len(each.variants) > 1:
            for variant in each.variants:
                click.echo(f"{'':<20}  --variant {variant.name}: {variant.title}")


@chaos.command()
def steps() -> None:
    """List the tables, keys and steps of scenario files."""
    for name, table in TABLES.items():
        click.echo(f"[{name}]")
        for key, rule in table.items():
            default = "" if rule.required or rule.default in ("-", {}) else f" = {rule.default}"
            click.echo(f"  {key + default:<28}{rule.doc}")
    click.echo("[[variants.steps]]")
    for do, (doc, table) in STEPS.items():
        keys = ", ".join(key for key in table)
        click.echo(f"  {do:<28}{doc}{f' Keys: {keys}.' if keys else ''}")


@chaos.command()
@click.argument("scenario")
@click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run on the cluster that `quorate up --faults` keeps in this directory. "
    "[default: a temporary cluster]",
)
@click.option("--variant", help="Run only this variant. [default: all, one after another]")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key on every node of the temporary cluster.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 2000),
    help="Partitions of the topic, instead of the number in the scenario.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the result as an HTML page.",
)
@click.option("--keep", is_flag=True, help="Keep the directory of the temporary cluster.")
@format_option
def run(
    scenario: str,
    directory: Path | None,
    variant: str | None,
    overrides: tuple[str, ...],
    partitions: int | None,
    html: Path | None,
    keep: bool,
    output: str,
) -> None:
    """Inject failures while clients write and read, and check that no acknowledged record is lost.

    SCENARIO is a name of `quorate chaos list`, or a .toml file. The exit status is the verdict: 0
    good, 1 bad."""
    try:
        loaded = load(scenario).with_partitions(partitions)
    except ScenarioError as error:
        raise Refused(str(error)) from None
    if directory is not None and overrides:
        raise click.UsageError(
            "--override cannot be given with --dir: the nodes of that cluster run already"
        )
    treat_sigterm_as_interrupt()
    view = View(sys.stdout if output == "text" else None)
    view.line(loaded.title if loaded.about == "-" else f"{loaded.title}. {loaded.about}")
    variants = variants_named(loaded, variant)
    if directory is not None:
        result = run_on_existing_cluster(loaded, variants, directory, view)
    else:
        result = run_on_temporary_cluster(loaded, variants, overrides, keep, view)
    if html is not None:
        from quorate.cli.chaos.page import render

        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(render(result), encoding="utf-8")
    if output == "json":
        click.echo(json.dumps(result.as_json()))
    for line in verdict_lines(result):
        view.line(line)
    raise SystemExit(0 if result.good else 1)


def treat_sigterm_as_interrupt() -> None:
    """Treat SIGTERM like Ctrl-C, so that faults end and a temporary cluster is removed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def variants_named(scenario: Scenario, name: str | None) -> tuple[Variant, ...]:
    """Return the variant with the name, or all variants for None.

    Raise UsageError if there is none."""
    if name is None:
        return scenario.variants
    found = tuple(each for each in scenario.variants if each.name == name)
    if not found:
        known = ", ".join(each.name for each in scenario.variants)
        raise click.UsageError(f"--variant: value {name!r} must be one of {known}")
    return found


def run_on_existing_cluster(
    scenario: Scenario, variants: tuple[Variant, ...], directory: Path, view: View
) -> Result:
    """Run the scenario on the cluster in `directory`, with a topic that is deleted afterwards.

    Raise Refused if there is no cluster, if a node does not run, or if one lacks the fault socket
    that the scenario needs."""
    cluster = ProcessCluster(directory)
    if not cluster.directory.file.exists():
        raise Refused(f"{directory}: there is no cluster in this directory (no cluster.json)")
    nodes = (*cluster.entry["controllers"], *cluster.entry["brokers"])
    down = [str(node["id"]) for node in nodes if not alive(node["pid"])]
    if down:
        raise Refused(
            f"{directory}: every node must run before a scenario; down: {', '.join(down)}"
        )
    faults = all(cluster.directory.faults_socket(node["id"]).exists() for node in nodes)
    if scenario.needs_faults and not faults:
        raise Refused(
            f"{directory}: {scenario.name} needs nodes with a fault socket: start them with "
            f"`quorate up --faults --dir {directory}`"
        )
    cluster = ProcessCluster(directory, faults=faults)
    topic = f"chaos-{scenario.name}-{time.time_ns() // 1_000_000}"
    try:
        return asyncio.run(run_scenario(Plan(scenario, variants, topic), cluster, view))
    finally:
        cluster.delete_topic(topic)


def run_on_temporary_cluster(
    scenario: Scenario,
    variants: tuple[Variant, ...],
    overrides: tuple[str, ...],
    keep: bool,
    view: View,
) -> Result:
    """Run the scenario on a new cluster in a temporary directory, removed unless `keep`.

    `overrides` (KEY=VALUE) replace configs of the scenario. Raise Refused if the cluster does not
    start."""
    root = Path(tempfile.mkdtemp(prefix="quorate-chaos-"))
    cluster = ProcessCluster(root / "cluster", faults=scenario.needs_faults)
    shape = scenario.cluster
    options = [f"--controllers={shape.controllers}", f"--brokers={shape.brokers}"]
    config = {**shape.config, **dict(pair_of(each) for each in overrides)}
    options += [f"--override={name}={value}" for name, value in config.items()]
    try:
        took_s = cluster.start(*options)
        shown = f"{shape.controllers} controllers and {shape.brokers} brokers"
        view.line(f"{'':>10}  {shown}, ready after {took_s:.1f} s")
        plan = Plan(scenario, variants, "chaos")
        return asyncio.run(run_scenario(plan, cluster, view))
    finally:
        cluster.stop()
        if keep:
            click.echo(f"kept: {root}", err=True)
        else:
            shutil.rmtree(root, ignore_errors=True)
