"""The description of a scenario: its workload, steps, bounds and checks. Pure text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from quorate.cli.chaos.checks.table import FAMILIES
from quorate.cli.chaos.scenario.scenario import EXPECT, NEEDS_KEY, NEEDS_STEP, Scenario, Step
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
        texts = [step_text(step) for step in variant.steps]
        width = max(map(len, texts))
        for number, (step, text) in enumerate(zip(variant.steps, texts, strict=True), 1):
            yield f"{number:>8}  {text:<{width}}  {STEPS[step.do].doc}"
        if variant.expect:
            shown = ", ".join(f"{name} = {bound:,}" for name, bound in variant.expect.items())
            yield f"{'':>10}expected, if this variant runs alone: {shown}"
    yield ""
    yield "expected"
    for name, bound in bounds(scenario).items():
        yield f"          {f'{name} = {bound:,}':<32}{EXPECT[name].doc}"
    yield ""
    yield "checks, of which those apply that concern the run"
    for family in FAMILIES:
        yield f"          {', '.join(family.names)}: {family.doc}"
    for variant in scenario.variants:
        ablation = scenario.ablation_of(variant)
        if ablation is not None:
            yield ""
            of = f" of {variant.name}" if len(scenario.variants) > 1 else ""
            yield f"ablation{of}: {ablation.what}"
            yield f"          The verdict is then bad, by the check: {ablation.check}"


def step_text(step: Step) -> str:
    """Return a step with its values."""
    values = " ".join(f"{key}={value}" for key, value in step.values.items())
    return f"{step.do} {values}".strip()


def bounds(scenario: Scenario) -> dict[str, int]:
    """Return the bounds by name, without those that no step and no client of the scenario uses."""
    done = {step.do for variant in scenario.variants for step in variant.steps}
    unused = {
        *(key for (_, key), other in NEEDS_KEY.items() if not getattr(scenario.workload, other)),
        *(key for (_, key), step in NEEDS_STEP.items() if step not in done),
    }
    found = {each.name: getattr(scenario.expect, each.name) for each in fields(scenario.expect)}
    return {
        name: bound for name, bound in found.items() if bound is not None and name not in unused
    }
