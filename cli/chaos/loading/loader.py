"""The reader of scenario files: TOML to a `Scenario`.

Errors name the file, the line and the rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from quorate.cli.chaos.checks.table import FAMILIES
from quorate.cli.chaos.loading.reading import Reading, ScenarioError, document_of
from quorate.cli.chaos.loading.step_order import WrongOrder, check_nodes, check_order
from quorate.cli.chaos.loading.toml_lines import Path as KeyPath
from quorate.cli.chaos.loading.toml_lines import line_of
from quorate.cli.chaos.scenario import scenario
from quorate.cli.chaos.scenario.scenario import (
    Ablation,
    Expected,
    Scenario,
    Shape,
    Step,
    Variant,
    Workload,
)
from quorate.cli.chaos.scenario.steps import STEPS
from quorate.cli.client.errors import said_once
from quorate.config.did_you_mean import did_you_mean
from quorate.config.key import ConfigError
from quorate.config.node_keys import NODE_KEYS

SUFFIX = ".toml"


def bundled_scenarios() -> dict[str, str]:
    """Return the text of every scenario that comes with Quorate, by name."""
    found = files("quorate.config") / "chaos"
    return {
        each.name.removesuffix(SUFFIX): each.read_text("utf-8")
        for each in sorted(found.iterdir(), key=lambda each: each.name)
        if each.name.endswith(SUFFIX)
    }


def load(name_or_path: str) -> Scenario:
    """Return a built-in scenario by its name, or the scenario in a file whose name ends in .toml.

    Raise ScenarioError if there is none or it is invalid."""
    known = bundled_scenarios()
    if name_or_path in known:
        return parse(known[name_or_path], f"config/chaos/{name_or_path}{SUFFIX}", name_or_path)
    path = Path(name_or_path)
    if path.suffix != SUFFIX:
        raise ScenarioError(
            f"{name_or_path}: no such scenario.{did_you_mean(name_or_path, known)} It must be one "
            f"of {', '.join(known)}, or the path of a {SUFFIX} file"
        )
    try:
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"it cannot be read: {said_once(error, path)}") from None
    return parse(content, str(path), path.stem)


def require_nodes(loaded: Scenario, controllers: Collection[int], brokers: Collection[int]) -> None:
    """Raise ScenarioError if a step names a node that a cluster with these nodes does not have."""
    try:
        check_nodes(loaded, controllers, brokers)
    except WrongOrder as wrong:
        raise ScenarioError(f"{loaded.origin}:{wrong.line}: {wrong}") from None


def parse(content: str, origin: str, name: str) -> Scenario:
    """Return the scenario in a text. `origin` is the file's name for errors.

    Raise ScenarioError if the text is no TOML or breaks a rule."""
    document = document_of(content, origin)
    return _ScenarioReading.of(content, origin).scenario(name, document)


class _ScenarioReading(Reading):
    def scenario(self, name: str, document: Mapping[str, Any]) -> Scenario:
        top = self.checked((), document, scenario.TOP)
        cluster = self.checked(("cluster",), top["cluster"], scenario.CLUSTER)
        workload = self.checked(("workload",), top["workload"], scenario.WORKLOAD)
        expect = self.checked(("expect",), top["expect"], scenario.EXPECT)
        self._fits_together(cluster, workload)
        self._members(workload)
        variants = tuple(
            self._variant(("variants", index), each) for index, each in enumerate(top["variants"])
        )
        self._without_effect(document, workload, variants)
        for index, variant in enumerate(variants):
            if variant.name in [each.name for each in variants[:index]]:
                self.refuse(
                    ("variants", index, "name"), f"two variants have the name {variant.name!r}"
                )
        return Scenario(
            name=name,
            title=top["title"],
            about=top["about"],
            cluster=Shape(
                controllers=cluster["controllers"],
                brokers=cluster["brokers"],
                racks=cluster["racks"],
                config=self._config(cluster["config"]),
            ),
            workload=Workload(**workload),
            expect=Expected(**expect),
            variants=variants,
            origin=self.origin,
            ablation=self._ablation(("ablation",), top["ablation"]),
        )

    def _ablation(self, path: KeyPath, values: Mapping[str, Any]) -> Ablation | None:
        if not values:
            return None
        checked = self.checked(path, values, scenario.ABLATION)
        known = [name for family in FAMILIES for name in family.names]
        if checked["check"] not in known:
            self.refuse(
                (*path, "check"),
                f"check: value {checked['check']!r} must be one of {', '.join(known)}",
            )
        return Ablation(**checked)

    def _variant(self, path: KeyPath, values: Mapping[str, Any]) -> Variant:
        checked = self.checked(path, values, scenario.VARIANT)
        steps = tuple(
            self._step((*path, "steps", index), each) for index, each in enumerate(checked["steps"])
        )
        try:
            check_order(steps)
        except WrongOrder as wrong:
            raise ScenarioError(f"{self.origin}:{wrong.line}: {wrong}") from None
        own, expect = checked["expect"], (*path, "expect")
        bounds = self.checked(expect, own, scenario.EXPECT)
        return Variant(
            checked["name"],
            checked["title"],
            steps,
            expect={key: bounds[key] for key in own},
            ablation=self._ablation((*path, "ablation"), checked["ablation"]),
        )

    def _step(self, path: KeyPath, values: Mapping[str, Any]) -> Step:
        do = values.get("do")
        if not isinstance(do, str) or do not in STEPS:
            known = ", ".join(STEPS)
            self.refuse((*path, "do"), f"do: value {do!r} must be one of {known}")
        table = STEPS[do].keys
        rest = {key: value for key, value in values.items() if key != "do"}
        return Step(do, self.checked(path, rest, table, f"step {do}: "), line_of(self.lines, path))

    def _fits_together(self, cluster: Mapping[str, Any], workload: Mapping[str, Any]) -> None:
        replicas, brokers = workload["replication_factor"], cluster["brokers"]
        if replicas > brokers:
            self.refuse(
                ("workload", "replication_factor"),
                f"replication_factor: value {replicas} must be at most the {brokers} brokers",
            )
        if workload["min_insync_replicas"] > replicas:
            self.refuse(
                ("workload", "min_insync_replicas"),
                f"min_insync_replicas: value {workload['min_insync_replicas']} must be at most "
                f"the replication_factor, {replicas}",
            )

    def _members(self, workload: Mapping[str, Any]) -> None:
        """Refuse kills of members if there are none, or one that nobody could replace."""
        if workload["member_kill_interval_ms"] and workload["group_members"] < 2:
            self.refuse(
                ("workload", "member_kill_interval_ms"),
                "member_kill_interval_ms: group_members must be at least 2",
            )

    def _without_effect(
        self,
        document: Mapping[str, Any],
        workload: Mapping[str, Any],
        variants: tuple[Variant, ...],
    ) -> None:
        """Refuse a key of the document that changes nothing in this scenario."""
        steps = {step.do for variant in variants for step in variant.steps}
        needs = {path: f"`{key}`" for path, key in scenario.NEEDS_KEY.items() if not workload[key]}
        needs |= {
            path: f"the step `{step}`"
            for path, step in scenario.NEEDS_STEP.items()
            if step not in steps
        }
        for (table, key), needed in needs.items():
            if key in document.get(table, {}):
                self.refuse((table, key), f"{key} has no effect without {needed}")
            for index, variant in enumerate(variants if table == "expect" else ()):
                if key in variant.expect:
                    path = ("variants", index, table, key)
                    self.refuse(path, f"{key} has no effect without {needed}")
        for index, variant in enumerate(variants if len(variants) == 1 else ()):
            if variant.expect:
                self.refuse(
                    ("variants", index, "expect"),
                    "expect has no effect in the only variant: use the table [expect]",
                )

    def _config(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return the configs of a cluster's nodes, checked with the nodes' own table of keys."""
        found = {}
        for name, value in values.items():
            path = ("cluster", "config", name)
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            if name not in NODE_KEYS:
                self.refuse(path, f"{name}: no such configuration key of a node")
            try:
                NODE_KEYS[name].parse(shown)
            except ConfigError as error:
                self.refuse(path, str(error))
            found[name] = shown
        return found
