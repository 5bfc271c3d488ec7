"""The commands of `quorate chaos`."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from quorate.cli.chaos.heal import heal
from quorate.cli.chaos.loading.loader import bundled_scenarios, load
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.results.compare import compare
from quorate.cli.chaos.results.outcome import NotRun, Outcome, exit_status, results_of
from quorate.cli.chaos.results.progress_file import ProgressFile
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.result_files import ResultFiles
from quorate.cli.chaos.results.summary import summary_lines, summary_table
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.cluster_choice import ClusterChoice
from quorate.cli.chaos.scenario.scenario import TABLES, Scenario, Variant
from quorate.cli.chaos.scenario.steps import STEPS
from quorate.cli.client.errors import PARTLY, NotReachable, Refused
from quorate.cli.client.options import format_option
from quorate.cli.nodes.cluster_dir import ClusterDir
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
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
        echo(json.dumps(rows))
        return
    for each in scenarios:
        echo(f"{each.name:<22}{each.title}")
        if len(each.variants) > 1:
            for variant in each.variants:
                echo(f"{'':<22}  --variant {variant.name}: {variant.title}")


@chaos.command()
def steps() -> None:
    """List the tables, keys and steps of scenario files."""
    for name, table in TABLES.items():
        echo(f"[{name}]")
        for key, rule in table.items():
            default = "" if rule.required or rule.default in ("-", {}) else f" = {rule.default}"
            echo(f"  {key + default:<28}{rule.doc}")
    echo("[[variants.steps]]")
    for do, kind in STEPS.items():
        doc, keys = kind.doc, ", ".join(kind.keys)
        echo(f"  {do:<28}{doc}{f' Keys: {keys}.' if keys else ''}")


@chaos.command()
def schema() -> None:
    """Print the JSON Schema of the result of a run."""
    from quorate.cli.chaos.results.schema import SCHEMA

    echo(json.dumps(SCHEMA, indent=2))


def scenario_names(context: click.Context, argument: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of scenarios that begin with `incomplete`, for the completion of a shell.
    `quorate chaos run` also takes ALL."""
    names = [*bundled_scenarios(), *([ALL] if context.info_name == "run" else [])]
    return sorted(name for name in names if name.startswith(incomplete))


scenario_argument = click.argument(
    "scenario",
    cls=DescribedArgument,
    description="A name of `quorate chaos list`, or a .toml file.",
    shell_complete=scenario_names,
)


@chaos.command()
@scenario_argument
def describe(scenario: str) -> None:
    """Print the steps of SCENARIO, its bounds, and the checks of its verdict.

    SCENARIO is a name of `quorate chaos list`, or a .toml file."""
    from quorate.cli.chaos.loading.describe import description

    echo("\n".join(description(loaded(scenario))))


@chaos.command()
@scenario_argument
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
@click.option(
    "--secure",
    is_flag=True,
    help="Give the temporary cluster TLS, SASL and ACLs, as `quorate up --secure` does.",
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
    help="Draw as the run with this seed did: the nodes of any-broker and any-controller, and the "
    "order in which each client asks the brokers. Elections and times are those of the nodes, "
    "which no seed repeats. [default: random, and part of the result]",
)
@click.option("--html", type=file_option, help="Also write the result as an HTML page.")
@click.option("--json", "json_file", type=file_option, help="Also write the result as JSON.")
@click.option("--junit", "junit_file", type=file_option, help="Also write JUnit XML.")
@click.option(
    "--progress",
    type=file_option,
    help="Write the progress into this file, for `quorate console --chaos-progress`. [default: "
    "chaos-progress.json in --dir]",
)
@click.option("--keep", is_flag=True, help="Keep the directory of the temporary cluster.")
@format_option
def run(
    scenario: str,
    variant: str | None,
    partitions: int | None,
    seed: int | None,
    html: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
    progress: Path | None,
    output: str,
    **of_cluster: Any,
) -> None:
    """Inject failures while clients write and read, and check that no acknowledged record is lost.

    SCENARIO is a name of `quorate chaos list`, or a .toml file, or `all` for all scenarios of the
    list. The exit status is the verdict: 0 good, 1 bad, and 4 if all verdicts are good but the
    cluster could not run some scenarios of `all`, or a file could not be written at the end. A path
    that cannot be written is refused before anything starts. Every run ends with a verdict, also if
    the cluster stays broken or a signal ends the run early. A signal also ends `all`."""
    cluster = ClusterChoice(**of_cluster)
    cluster.refuse_contradictions()
    if scenario == ALL and (variant is not None or html is not None):
        raise click.UsageError(f"--variant and --html cannot be given with `{ALL}`")
    names = list(bundled_scenarios()) if scenario == ALL else [scenario]
    chosen = [loaded(name).with_partitions(partitions) for name in names]
    file = progress_file(progress, cluster.directory)
    view = View(sys.stdout if output == "text" else None, file=file)
    files = ResultFiles(html, json_file, junit_file, of_all=scenario == ALL)
    files.refuse_unwritable()
    chance = random.randrange(MAX_SEED + 1) if seed is None else seed

    def run_one(each: Scenario) -> Result:
        view.line(each.title if each.about == "-" else f"{each.title}. {each.about}")
        result = cluster.run(each, variants_named(each, variant), chance, view)
        view.end(result)
        return result

    if scenario == ALL:
        outcomes = run_all(chosen, run_one, view, files)
    else:
        outcomes = [run_one(chosen[0])]
    lacking = files.write(outcomes)
    if output == "json":
        echo(files.text(outcomes))
    elif scenario == ALL:
        show(summary_lines(outcomes), [summary_table(outcomes)])
    left = (each for result in results_of(outcomes) for each in result.left_behind)
    for line in (*left, *lacking):
        echo(line, err=True)
    status = exit_status(outcomes)
    raise SystemExit(PARTLY if lacking and not status else status)


def run_all(
    scenarios: Sequence[Scenario],
    run_one: Callable[[Scenario], Result],
    view: View,
    files: ResultFiles,
) -> list[Outcome]:
    """Return the outcome of each scenario. After a signal, no further one is run.

    The files are written after each scenario."""
    outcomes: list[Outcome] = []
    signal_name: str | None = None
    for each in scenarios:
        if signal_name is not None:
            outcomes.append(NotRun(each.name, f"{signal_name} ended the run of all scenarios"))
            continue
        try:
            result = run_one(each)
        except (Refused, NotReachable) as refused:
            outcomes.append(NotRun(each.name, refused.message))
            view.line(f"refused: {refused.message}")
        else:
            outcomes.append(result)
            signal_name = result.ended_by
        files.write_so_far(outcomes)
    return outcomes


def progress_file(progress: Path | None, directory: Path | None) -> ProgressFile | None:
    """Return the file of --progress, the one in --dir, or None."""
    if progress is None and directory is not None:
        progress = ClusterDir(directory).chaos_progress
    return None if progress is None else ProgressFile(progress, partial(echo, err=True))


def loaded(name: str) -> Scenario:
    """Return the scenario with the name or in the file. Raise Refused if it is not valid."""
    try:
        return load(name)
    except ScenarioError as error:
        raise Refused(str(error)) from None


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
