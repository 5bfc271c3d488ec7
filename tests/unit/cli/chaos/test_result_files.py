"""The files of a result: JSON as its schema says, JUnit XML, and the comparison of two results."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner

from quorate.cli.chaos.command import chaos
from quorate.cli.chaos.loading.describe import description
from quorate.cli.chaos.loading.loader import bundled_scenarios, load
from quorate.cli.chaos.results.compare import NUMBERS, differences
from quorate.cli.chaos.results.junit import junit
from quorate.cli.chaos.results.outcome import NotRun
from quorate.cli.chaos.results.page import render
from quorate.cli.chaos.results.schema import SCHEMA
from quorate.cli.chaos.results.summary import summary_lines
from quorate.cli.chaos.workload.latencies import Latencies
from quorate.cli.client.errors import Refused
from tests.unit.cli.chaos.histories import killed, not_started, result

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "null": type(None),
}


def errors(schema: dict[str, Any], value: Any, path: str = "") -> list[str]:
    """Return the violations of the part of JSON Schema that SCHEMA uses."""
    known = {
        *("$schema", "title", "description", "type", "items", "minimum", "const", "enum"),
        *("properties", "required", "additionalProperties", "$defs"),
    }
    assert schema.keys() <= known, f"this test does not know all keywords of {schema.keys()}"
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return [] if value in allowed else [f"{path}: {value!r} is not in {allowed}"]
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(type(value) is TYPES[name] for name in names):
        return [f"{path}: {value!r} is no {names}"]
    found = []
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        found.append(f"{path}: {value} is less than {schema['minimum']}")
    for number, item in enumerate(value if isinstance(value, list) else ()):
        found += errors(schema["items"], item, f"{path}[{number}]")
    if isinstance(value, dict):
        properties, rest = schema.get("properties", {}), schema["additionalProperties"]
        found += [
            f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value
        ]
        for name, each in value.items():
            if name in properties or rest:
                found += errors(properties.get(name, rest), each, f"{path}.{name}")
            else:
                found.append(f"{path}.{name} is not described")
    return found


def written(**changed: Any) -> dict[str, Any]:
    """Return the JSON of a result, as a reader of the file gets it."""
    found: dict[str, Any] = json.loads(json.dumps(result(**changed).as_json()))
    return found


def test_the_json_is_as_the_schema_says() -> None:
    assert errors(SCHEMA, written()) == []
    assert errors(SCHEMA, written(failed_steps=["x"], faults=())) == []


def test_the_json_of_a_run_that_could_not_start_has_no_numbers() -> None:
    told = json.loads(json.dumps(not_started().as_json()))
    assert errors(SCHEMA, told) == []
    assert told["verdict"] == "bad"
    assert set(told["unavailable_ms"].values()) == {None}
    assert list(told["unavailable_ms"]) == [str(each) for each in range(12)]
    assert set(told["availability"].values()) == {None}
    assert told["latency_ms"]["write"]["during"] == {
        "count": 0,
        **dict.fromkeys(("p50", "p99", "max")),
    }
    assert (told["leader_moves"], told["isr_shrinks"]) == (None, None)


@pytest.mark.parametrize("scenario", bundled_scenarios())
def test_no_check_of_a_run_that_could_not_start_is_good(scenario: str) -> None:
    assert [each.name for each in not_started(scenario).checks if each.good] == []


def test_the_page_of_a_run_that_could_not_start_says_what_is_unknown() -> None:
    page = render(not_started())
    assert page.count("<b>unknown</b>") == 4, "lost, duplicated, the longest wait, and partitions"
    assert ">100.00 %" not in page and "card good" not in page
    assert "no cluster &lt;x&gt;" in page
    assert "data-name" not in page, "no lane shows a time in which clients write"
    assert page.count("Unknown: ") == 3, "the chart, latencies and availability"
    assert "<td class=v>ok" not in page


def test_junit_of_a_run_that_could_not_start() -> None:
    failed = not_started()
    (suite,) = Xml.fromstring(junit([failed]))
    assert suite.get("failures") == suite.get("tests") == str(len(failed.checks))
    assert "no cluster <x>" in {each.get("message") for each in suite.iter("failure")}


def test_a_run_that_could_not_start_is_worse_and_its_numbers_are_unknown() -> None:
    before, after = written(), json.loads(json.dumps(not_started("heartbeat-timeout").as_json()))
    after["variants"] = before["variants"]
    found = {each.name: each for each in differences(before, after)}
    assert found["verdict"].worse and found["check steps"].worse
    wait = found["longest wait of a write, ms"]
    assert (wait.before, wait.after, wait.worse) == ("900", "unknown", False)
    assert "verdict" not in worse(after, before)
    assert worse(after, after) == []


def test_the_schema_finds_other_json() -> None:
    assert errors(SCHEMA, {**written(), "lost": -1}) == [".lost: -1 is less than 0"]
    assert errors(SCHEMA, {**written(), "x": 1}) == [".x is not described"]
    assert errors(SCHEMA, {**written(), "verdict": "fine"}) != []


def test_the_command_prints_the_schema() -> None:
    assert json.loads(CliRunner().invoke(chaos, ["schema"]).output) == SCHEMA


def test_junit_has_a_case_for_each_check() -> None:
    first, second = result(), result(taken_back=4, failed_steps=["a \x01 < b"])
    document = Xml.fromstring(junit([first, second]))
    suites = list(document)
    assert [suite.get("name") for suite in suites] == ["quorate chaos heartbeat-timeout"] * 2
    assert [suite.get("failures") for suite in suites] == ["0", "2"]
    assert len(suites[1]) == len(second.checks)
    messages = [case.find("failure") for case in suites[1]]
    assert [each.get("message") for each in messages if each is not None] == [
        "a   < b",
        "3 records read during the run, 4 of them changed or missing later",
    ]
    assert document.get("failures") == "2"
    names = [case.get("name") for case in suites[0]]
    assert len(set(names)) == len(names), "a CI system shows each of them"


def worse(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the names of the facts that got worse."""
    return [each.name for each in differences(before, after) if each.worse]


def test_the_same_result_is_not_worse() -> None:
    assert worse(written(), written()) == []


GROWN = [
    ("lost", 1, "records lost"),
    ("duplicated", 1, "records duplicated"),
    ("unverified", 1, "records unverified"),
    ("out_of_order", 1, "records out of order"),
    ("changed", 1, "records changed"),
    ("availability.longest_write_ms", 1_401, "longest wait of a write, ms"),
    ("availability.longest_read_ms", 501, "longest wait of the consumer, ms"),
    ("availability.longest_metadata_ms", 501, "longest wait of a metadata change, ms"),
    ("latency_ms.write.during.p99", 1_401, "p99 of writes during the faults, ms"),
    ("latency_ms.write.after.p99", 108, "p99 of writes after the faults, ms"),
]
"""Each compared number, the smallest value that is worse, and its name."""


@pytest.mark.parametrize(("path", "value", "name"), GROWN)
def test_a_number_that_got_worse(path: str, value: int, name: str) -> None:
    measured = {"write": Latencies((1_000, 2_500, 9_000), (5, 900, 7))}
    before, after = written(latencies=measured), written(latencies=measured)
    inner = after
    *above, last = path.split(".")
    for key in above:
        inner = inner[key]
    inner[last] = value
    assert worse(before, after) == [name]
    assert worse(after, before) == []
    inner[last] = value - 1
    assert worse(before, after) == []


def test_every_number_has_such_a_case() -> None:
    assert [path for path, _, _ in GROWN] == [*dict.fromkeys(path for path, _, _ in GROWN)]
    assert {path for path, _, _ in GROWN} == set(NUMBERS)


def test_a_long_wait_may_vary_by_a_share() -> None:
    before, after = written(), written()
    before["availability"]["longest_write_ms"] = 4_000
    after["availability"]["longest_write_ms"] = 5_000
    assert worse(before, after) == []
    after["availability"]["longest_write_ms"] = 5_001
    assert worse(before, after) == ["longest wait of a write, ms"]


def test_a_check_that_fails_or_disappears_is_worse() -> None:
    before, after = written(), written(taken_back=1)
    assert worse(before, after) == ["verdict", "check taken back"]
    fewer = deepcopy(before)
    fewer["checks"] = [each for each in fewer["checks"] if each["name"] != "lost"]
    assert worse(before, fewer) == ["check lost"]
    assert worse(fewer, before) == []


def test_a_check_without_evidence_is_not_worse() -> None:
    reason = {"replicas": "the files are out of reach"}
    before, listed = written(), written(not_judged=reason)
    (found,) = [each for each in differences(before, listed) if each.before != each.after]
    assert (found.name, found.after, found.worse) == ("check replicas", "not judged", False)
    assert worse(written(different_replicas=[3]), listed) == []
    assert worse(listed, written(different_replicas=[3])) == ["verdict", "check replicas"]


def test_results_that_cannot_be_compared() -> None:
    other = {**written(), "scenario": "leader-kill"}
    with pytest.raises(Refused, match="the results differ in scenario: heartbeat-timeout and lea"):
        differences(written(), other)
    lacking = written()
    del lacking["availability"]
    with pytest.raises(Refused, match="a result is not complete: KeyError: 'availability'"):
        differences(lacking, written())
    for value in ("0", None):
        with pytest.raises(Refused, match=f"lost: value {value!r} must be a whole number"):
            differences({**written(), "lost": value}, written())


def test_compare_as_a_command(tmp_path: Path) -> None:
    before, after, wrong = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    before.write_text(json.dumps(written()))
    after.write_text(json.dumps(written(taken_back=1)))
    wrong.write_text('{"verdict": "good"}')
    ended = CliRunner().invoke(chaos, ["compare", str(before), str(after)])
    assert ended.exit_code == 1
    assert " WORSE  verdict" in ended.output
    assert f"{after} is worse than {before}" in ended.output
    ended = CliRunner().invoke(chaos, ["compare", str(after), str(before)])
    assert (ended.exit_code, "is not worse than" in ended.output) == (0, True)
    ended = CliRunner().invoke(chaos, ["compare", str(before), str(wrong)])
    assert ended.exit_code == 1
    assert "this is no result of `quorate chaos run` with schema_version 5" in ended.output


def compared_files(tmp_path: Path, before: object, after: object) -> tuple[int, str]:
    """Return the exit status and the output of a comparison."""
    for name, found in (("a.json", before), ("b.json", after)):
        (tmp_path / name).write_text(json.dumps(found))
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    ended = CliRunner().invoke(chaos, ["compare", *files])
    return ended.exit_code, ended.output


def named(scenario: str, **changed: Any) -> dict[str, Any]:
    """Return the JSON of a result of a scenario."""
    return {**written(**changed), "scenario": scenario}


def test_the_files_of_all_scenarios_are_compared_by_scenario(tmp_path: Path) -> None:
    both = [named("leader-kill"), named("rack-loss")]
    assert compared_files(tmp_path, both, [*reversed(both)])[0] == 0
    status, said = compared_files(tmp_path, both, [named("rack-loss", taken_back=1), both[0]])
    assert status == 1
    lines = said.splitlines()
    assert [line for line in lines if line in ("leader-kill", "rack-loss")] == [
        "leader-kill",
        "rack-loss",
    ]
    assert " WORSE" not in said.partition("\nrack-loss\n")[0]
    assert " WORSE  verdict" in said.partition("\nrack-loss\n")[2]
    assert "worse: 1 of 2 scenarios: rack-loss" in lines


def test_a_scenario_that_is_missing_or_refused_is_named(tmp_path: Path) -> None:
    refused = NotRun("rack-loss", "it needs racks").as_json()
    both = [named("leader-kill"), named("rack-loss")]
    status, said = compared_files(tmp_path, both, both[:1])
    assert (status, "good -> missing" in said) == (1, True)
    assert "worse: 1 of 2 scenarios: rack-loss" in said
    status, said = compared_files(tmp_path, both, [both[0], refused])
    assert (status, "good -> refused: it needs racks" in said) == (1, True)
    status, said = compared_files(tmp_path, [both[0], refused], both)
    assert (status, "refused: it needs racks -> good" in said) == (0, True)
    status, said = compared_files(tmp_path, both[:1], both)
    assert (status, "missing -> good" in said) == (0, True)
    assert compared_files(tmp_path, both, both[0])[0] == 1, "one result is a list of one"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "there is no result"),
        ([named("a"), named("a")], "there are two results of a"),
        ([named("a"), 3], "this is no result of `quorate chaos run`"),
    ],
)
def test_files_that_hold_no_results(found: object, said: str, tmp_path: Path) -> None:
    status, output = compared_files(tmp_path, found, written())
    assert (status, said in output) == (1, True), output


def test_the_schema_describes_a_scenario_that_was_refused() -> None:
    refused = NotRun("leader-kill", "node 4 does not run").as_json()
    assert errors(SCHEMA["$defs"]["not_run"], json.loads(json.dumps(refused))) == []


def test_the_table_of_all_scenarios() -> None:
    lines = [*summary_lines([result(), result(taken_back=1, failed_steps=["x"])])]
    assert lines[1].split() == ["heartbeat-timeout", "good", "10.0", "3", "-"]
    assert lines[2].endswith("steps, taken back")


def test_a_description_has_the_bounds_that_its_scenario_uses() -> None:
    lines = told("leader-kill")
    assert not any(line.startswith(("max_rebalance_ms", "max_resign_ms")) for line in lines)
    assert "max_unavailable_ms = 3,000      The longest time" in "\n".join(lines)
    assert any(line.startswith("max_resign_ms") for line in told("controller-partition"))
    assert any(line.startswith("max_rebalance_ms") for line in told("group-restart"))


def told(name: str) -> list[str]:
    """Return the lines of the description of a scenario."""
    return [line.strip() for line in description(load(name))]


def test_every_scenario_can_be_described() -> None:
    for name in bundled_scenarios():
        scenario = load(name)
        told = "\n".join(description(scenario))
        assert scenario.title in told
        assert "max_metadata_wait_ms" in told
        assert all(f"  {step.do} " in told for each in scenario.variants for step in each.steps)
    ended = CliRunner().invoke(chaos, ["describe", "controller-kill"])
    assert "The verdict is then bad, by the check: failover" in ended.output


def test_a_fault_on_the_page_is_told() -> None:
    assert written(faults=(killed(),))["faults"][0]["affected"] == 12
