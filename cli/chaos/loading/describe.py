"""The description of a scenario: its workload, steps, bounds and checks. Pure text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from quorate.cli.chaos.checks.table import FAMILIES
from quorate.cli.chaos.scenario.scenario import EXPECT, Scenario, Step
from quorate.cli.chaos.scenario.steps import STEPS


def description(scenario: Scenario) -> Iterator[str]:
    """Yield the lines of a scenario's description."""
    yield scenario.title
    if scenario.about != "-":
        yield scenario.about
    shape, load = scenario.cluster, scenario.workload
    yield ""
    racks = f" in {shape.racks} racks" if shape.racks else ""
    yield (
        f"cluster   {shape.controllers} controllers and {shape.brokers} brokers{racks}, unless "
        "--dir names another one"
    )
    for name, value in shape.config.items():
        yield f"          {name}={value}"
    yield (
        f"workload  {load.partitions} partitions x {load.replication_factor}, min.insync.replicas "
        f"{load.min_insync_replicas}, {load.records_per_s:,} records/s, acks={load.acks}"
    )
    for variant in scenario.variants:
        title = "" if variant.title == "-" else f": {variant.title}"
        yield ""
        yield f"variant   {variant.name}{title}"
        for number, step in enumerate(variant.steps, 1):
            yield f"{number:>8}  {step_text(step)}"
    yield ""
    yield "expected"
    for key in fields(scenario.expect):
        bound = getattr(scenario.expect, key.name)
        if bound is not None:
            yield f"          {key.name} = {bound:<8,} {EXPECT[key.name].doc}"
    yield ""
    yield "checks"
    for family in FAMILIES:
        yield f"          {', '.join(family.names)}: {family.doc}"
    if scenario.ablation is not None:
        yield ""
        yield f"ablation  {scenario.ablation.what}"
        yield f"          The verdict is then bad, by the check: {scenario.ablation.check}"


def step_text(step: Step) -> str:
    """Return a step with its values and its meaning."""
    values = " ".join(f"{key}={value}" for key, value in step.values.items())
    doc = STEPS[step.do].doc
    return f"{f'{step.do} {values}'.strip():<46}{doc}"
