"""No key of config/ is without an effect that a test shows, or a reason for having none.

The test walks the tables of node keys and topic keys, and all of Kafka's properties.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from quorate.config.key import Key
from quorate.config.node_keys import ALIASES, NODE_KEYS
from quorate.config.not_in_effect import NOT_YET, REASONS, why_not_in_effect
from quorate.config.refused_keys import may_be_refused
from quorate.config.topic_keys import TOPIC_KEYS
from tests.unit.config.test_key_wiring import NODE, TOPIC

LEVELS = tuple(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
"""The keys of test_a_compression_level_reaches_its_settings."""
TESTS = Path(__file__).parents[2]
TABLE = Path(__file__).parent / "key_effects.txt"
KAFKA_NODE_KEYS = [
    line.split("\t")[0]
    for line in (Path(__file__).parent / "kafka_4_1_1_node_keys.tsv").read_text().splitlines()
]
SYNONYM_OF = {node_key: name for name, key in TOPIC_KEYS.items() for node_key, _ in key.synonyms}


def read_table() -> dict[str, dict[str, list[str]]]:
    """Return the tests of each key, by section of the table."""
    sections: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, test = line.split()
            section.setdefault(key, []).append(test)
    return sections


NODE_EFFECTS, TOPIC_EFFECTS = (read_table()[each] for each in ("node", "topic"))
NOT_YET_NAMES = {name for names in NOT_YET.values() for name in names}
EFFECTS = {f"node {name}": tests for name, tests in NODE_EFFECTS.items()} | {
    f"topic {name}": tests for name, tests in TOPIC_EFFECTS.items()
}


@cache
def functions_of(file: str) -> frozenset[str]:
    """Return the names of the test functions at the top level of a file below tests/."""
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    functions = ast.FunctionDef, ast.AsyncFunctionDef
    body = ast.parse(path.read_text()).body
    return frozenset(each.name for each in body if isinstance(each, functions))


def has_effect(name: str) -> bool:
    """Return True if a test shows the effect of a node key, or of the topic key that it is the
    default of."""
    return name in NODE_EFFECTS or SYNONYM_OF.get(name) in TOPIC_EFFECTS


@pytest.mark.parametrize("name", NODE_KEYS)
def test_every_node_key_has_an_effect_or_a_reason(name: str) -> None:
    reason = why_not_in_effect(name)
    assert has_effect(name) != (reason is not None), (
        f"{name} needs a line in tests/unit/config/key_effects.txt or a reason in "
        f"config/not_in_effect.py, and not both (reason: {reason})"
    )


@pytest.mark.parametrize("name", TOPIC_KEYS)
def test_every_topic_key_has_an_effect_or_a_reason(name: str) -> None:
    reason = why_not_in_effect(name)
    assert (name in TOPIC_EFFECTS) != (reason is not None), (
        f"{name} needs a line in tests/unit/config/key_effects.txt or a reason in "
        f"config/not_in_effect.py, and not both (reason: {reason})"
    )


def test_every_line_has_its_key() -> None:
    assert NODE_EFFECTS.keys() <= NODE_KEYS.keys()
    assert TOPIC_EFFECTS.keys() <= TOPIC_KEYS.keys()
    assert NODE_KEYS.keys() | TOPIC_KEYS.keys() >= NOT_YET_NAMES


@pytest.mark.parametrize("entry", EFFECTS)
def test_every_line_names_tests_that_exist(entry: str) -> None:
    assert EFFECTS[entry]
    for test in EFFECTS[entry]:
        file, _, name = test.partition("::")
        assert name in functions_of(file), f"{entry}: there is no test {test}"


WITH_NODES = ("ports/", "clients/", "testing/")
"""The folders whose tests set properties of nodes that run."""
WITH_TEXTS = (
    # The key names of this file become settings that a listener reads.
    "unit/rpc/tls/test_settings.py::test_each_key_reaches_its_setting",
    "unit/config/test_sasl_keys.py::test_the_settings_of_oauthbearer_and_their_prefixes",
    # A properties file becomes a configuration, whose attribute the node uses.
    "unit/config/test_loader.py::test_the_data_directory",
    "unit/cli/test_log_format.py::test_the_level_and_the_format_of_the_configuration_are_in_effect",
    # Requests of clients set the configs that the controller's rules read.
    "unit/controller/test_unclean_recovery.py::test_the_longest_log_leads",
    "unit/controller/test_unclean_recovery.py::test_none_elects_the_last_leader_only",
    # These read the configuration of a node as its start does.
    "unit/replication/test_recompressions.py::test_the_level_of_the_topic_counts",
)
"""Tests without a running node that begin with the text of a key."""


def begins_with_the_text(name: str, tests: list[str]) -> bool:
    """Return True if the text of a key, and not only a setting that a test makes, is shown to have
    the effect: by the table of test_key_wiring.py or by a test that sets the text."""
    wired = name in NODE or name in TOPIC or name in LEVELS or SYNONYM_OF.get(name) in TOPIC
    return wired or any(each.startswith(WITH_NODES) or each in WITH_TEXTS for each in tests)


@pytest.mark.parametrize("entry", EFFECTS)
def test_every_effect_begins_with_the_text_of_its_key(entry: str) -> None:
    """Otherwise the key could be read under another name, or not at all."""
    name = entry.split()[1]
    assert begins_with_the_text(name, EFFECTS[entry]), (
        f"{name} needs a row in test_key_wiring.py, or a test with a running node in "
        "key_effects.txt"
    )


@pytest.mark.parametrize("name", KAFKA_NODE_KEYS)
def test_every_property_of_kafka_is_a_key_or_refused_or_named_with_a_reason(name: str) -> None:
    is_key = name in NODE_KEYS or name in ALIASES
    assert is_key or may_be_refused(name) or why_not_in_effect(name) is not None
    assert not (is_key and may_be_refused(name))
    if is_key and why_not_in_effect(name) is not None:
        assert name in NOT_YET_NAMES, "no pattern may cover a key"


def test_every_pattern_is_of_a_property_of_kafka() -> None:
    """Otherwise a mistyped pattern would pass. Two prefixes belong to plug-ins."""
    plug_ins = {r"rlmm\.config\..+", r"rsm\.config\..+", r"auto\.include\.jmx\.reporter"}
    for reason, patterns in REASONS:
        for pattern in set(patterns) - plug_ins:
            matching = [name for name in KAFKA_NODE_KEYS if re.fullmatch(pattern, name)]
            assert matching, f"{pattern} ({reason}) matches no property of Kafka"


@pytest.mark.parametrize(
    "key", [*NODE_KEYS.values(), *TOPIC_KEYS.values()], ids=lambda key: str(key.name)
)
def test_the_description_says_that_a_key_is_not_in_effect(key: Key) -> None:
    says_so = "not in effect" in key.doc.lower() or "no effect" in key.doc.lower()
    assert says_so == (key.name in NOT_YET_NAMES), key.doc
