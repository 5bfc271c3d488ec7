"""The commands of `quorate chaos`."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from quorate.cli.chaos.heal import heal
from quorate.cli.chaos.loading.loader import bundled_scenarios, load
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.results.compare import compare
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.summary import summary_lines, summary_table
from quorate.cli.chaos.results.view import View, verdict_lines
from quorate.cli.chaos.run.cluster_runs import (
    file_of_clients,
    run_on_existing_cluster,
    run_on_temporary_cluster,
)
from quorate.cli.chaos.run.listed_runs import run_on_listed_cluster
from quorate.cli.chaos.scenario.scenario import TABLES, Scenario, Variant
from quorate.cli.chaos.scenario.steps import STEPS
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import format_option
from quorate.cli.suggesting_group import SuggestingGroup
from quorate.cli.terminal.tables import show

ALL = "all"
"""The name that stands for all scenarios of `quorate chaos list`."""
MAX_SEED = 2**32 - 1
file_option = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=SuggestingGroup)
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
    for do, kind in STEPS.items():
        doc, keys = kind.doc, ", ".join(kind.keys)
        click.echo(f"  {do:<28}{doc}{f' Keys: {keys}.' if keys else ''}")


@chaos.command()
def schema() -> None:
    """Print the JSON Schema of the result of a run."""
    from quorate.cli.chaos.results.schema import SCHEMA

    click.echo(json.dumps(SCHEMA, indent=2))


@chaos.command()
@click.argument("scenario")
def describe(scenario: str) -> None:
    """Print the steps of SCENARIO, its bounds, and the checks of its verdict.

    SCENARIO is a name of `quorate chaos list`, or a .toml file."""
    from quorate.cli.chaos.loading.describe import description

    click.echo("\n".join(description(loaded(scenario))))


@chaos.command()
@click.argument("scenario")
@click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run on the cluster that `quorate up --faults` keeps in this directory. "
    "[default: a temporary cluster]",
)
@click.option(
    "--bootstrap-server",
    "bootstrap",
    metavar="HOST:PORT,...",
    help="Run on the cluster of these brokers, which may be Apache Kafka. Needs --nodes.",
)
@click.option(
    "--nodes",
    "node_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file that lists the nodes of that cluster, and the commands that stop, kill, pause, "
    "resume and start each one.",
)
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False),
    help="A .properties file with client settings, such as security.protocol, for every client of "
    "the run. [default: client.properties in the --dir of `quorate up --secure`]",
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
    "--keep-config",
    is_flag=True,
    help="Use the configuration of the running cluster, although the scenario sets other values.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 2000),
    help="Partitions of the topic, instead of the number in the scenario.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, MAX_SEED),
    help="Choose the same nodes as the run with this seed, where a step draws one. [default: "
    "random, and part of the result]",
)
@click.option("--html", type=file_option, help="Also write the result as an HTML page.")
@click.option("--json", "json_file", type=file_option, help="Also write the result as JSON.")
@click.option("--junit", "junit_file", type=file_option, help="Also write JUnit XML.")
@click.option("--keep", is_flag=True, help="Keep the directory of the temporary cluster.")
@format_option
def run(
    scenario: str,
    directory: Path | None,
    bootstrap: str | None,
    node_file: Path | None,
    command_config: str | None,
    variant: str | None,
    overrides: tuple[str, ...],
    keep_config: bool,
    partitions: int | None,
    seed: int | None,
    html: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
    keep: bool,
    output: str,
) -> None:
    """Inject failures while clients write and read, and check that no acknowledged record is lost.

    SCENARIO is a name of `quorate chaos list`, or a .toml file, or `all` for all scenarios of the
    list. The exit status is the verdict: 0 good, 1 bad. Every run ends with a verdict, also if the
    cluster stays broken or a signal ends the run early."""
    refuse_wrong_options(directory, bootstrap, node_file, bool(overrides or keep), keep_config)
    if command_config is not None:
        refuse_without_cluster("--command-config", directory, bootstrap)
    if scenario == ALL and (variant is not None or html is not None):
        raise click.UsageError(f"--variant and --html cannot be given with `{ALL}`")
    names = list(bundled_scenarios()) if scenario == ALL else [scenario]
    chosen = [loaded(name).with_partitions(partitions) for name in names]
    view = View(sys.stdout if output == "text" else None)
    chance = random.randrange(MAX_SEED + 1) if seed is None else seed
    results = []
    for each in chosen:
        view.line(each.title if each.about == "-" else f"{each.title}. {each.about}")
        variants = variants_named(each, variant)
        if bootstrap is not None and node_file is not None:
            result = run_on_listed_cluster(
                *(each, variants, chance, bootstrap, node_file, keep_config, view),
                ClientFile.read(command_config),
            )
        elif directory is not None:
            client_file = file_of_clients(directory, command_config)
            result = run_on_existing_cluster(
                each, variants, chance, directory, keep_config, view, client_file
            )
        else:
            result = run_on_temporary_cluster(each, variants, chance, overrides, keep, view)
        results.append(result)
        for line in verdict_lines(result):
            view.line(line)
    found = [each.as_json() for each in results]
    as_json = json.dumps(found if scenario == ALL else found[0])
    write_files(results, as_json, html, json_file, junit_file)
    if output == "json":
        click.echo(as_json)
    elif scenario == ALL:
        show(summary_lines(results), [summary_table(results)])
    for result in results:
        for left in result.left_behind:
            click.echo(left, err=True)
    raise SystemExit(0 if all(result.good for result in results) else 1)


def refuse_wrong_options(
    directory: Path | None,
    bootstrap: str | None,
    node_file: Path | None,
    of_temporary: bool,
    keep_config: bool,
) -> None:
    """Raise UsageError if options do not fit together.

    `of_temporary` says that an option is given which only a temporary cluster has."""
    if (bootstrap is None) != (node_file is None):
        raise click.UsageError("--bootstrap-server and --nodes need each other")
    if directory is not None and bootstrap is not None:
        raise click.UsageError("--dir cannot be given with --bootstrap-server")
    if of_temporary and (directory is not None or bootstrap is not None):
        raise click.UsageError(
            "--override and --keep cannot be given with --dir or --bootstrap-server: the nodes of "
            "that cluster run already"
        )
    if keep_config:
        refuse_without_cluster("--keep-config", directory, bootstrap)


def refuse_without_cluster(option: str, directory: Path | None, bootstrap: str | None) -> None:
    """Raise UsageError if `option` is given for a temporary cluster."""
    if directory is None and bootstrap is None:
        raise click.UsageError(
            f"{option} needs --dir or --bootstrap-server: a temporary cluster has no "
            "configuration of its own, and no TLS or SASL"
        )


def loaded(name: str) -> Scenario:
    """Return the scenario with the name or in the file. Raise Refused if it is not valid."""
    try:
        return load(name)
    except ScenarioError as error:
        raise Refused(str(error)) from None


def write_files(
    results: Sequence[Result],
    as_json: str,
    html: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
) -> None:
    """Write the requested files. Missing directories are created."""
    from quorate.cli.chaos.results.junit import junit
    from quorate.cli.chaos.results.page import render

    wanted: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (html, lambda: render(results[0])),
        (json_file, lambda: as_json + "\n"),
        (junit_file, lambda: junit(results)),
    )
    for path, text in wanted:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(), encoding="utf-8")


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


chaos.add_command(heal)
chaos.add_command(compare)
