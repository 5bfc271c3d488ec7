"""pyproject.toml, constraints.txt and the scripts of CI name the same Pythons and packages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(line) for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines
]


def pinned() -> dict[str, set[str]]:
    """The versions in constraints.txt by package; more than one if they depend on the Python."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        pin = Requirement(line)
        (each,) = pin.specifier
        assert each.operator == "==", line
        found.setdefault(canonicalize_name(pin.name), set()).add(each.version)
    return found


def versions_of_ci() -> list[str]:
    (names,) = re.findall(r"^VERSIONS=\((.*)\)$", (ROOT / ".ci/pythons").read_text(), re.M)
    return str(names).split()


def test_the_classifiers_are_the_versions_that_ci_names() -> None:
    prefix = "Programming Language :: Python :: 3."
    classifiers = [each for each in PROJECT["classifiers"] if each.startswith(prefix)]
    assert [each.rpartition(" ")[2] for each in classifiers] == versions_of_ci()


def test_the_oldest_version_of_ci_is_the_oldest_that_is_supported() -> None:
    versions = versions_of_ci()
    required = SpecifierSet(PROJECT["requires-python"])
    assert all(version in required for version in versions)
    major, minor = map(int, versions[0].split("."))
    assert f"{major}.{minor - 1}" not in required


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_every_dependency_is_pinned_within_its_range(requirement: Requirement) -> None:
    versions = pinned().get(canonicalize_name(requirement.name))
    assert versions, "not in constraints.txt: run `make lock`"
    assert all(version in requirement.specifier for version in versions)
