"""The files of the page are in the wheel, and each is served."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path

from quorate.cli.console.server import FILES

ROOT = Path(__file__).parents[4]
STATIC = ROOT / "cli" / "console" / "static"
MAX_LINES = 250


def test_every_file_of_the_page_is_served_and_in_the_wheel() -> None:
    names = {each.name for each in STATIC.iterdir()}
    assert names == {*FILES, "index.html"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["quorate.cli.console"]
    for name in names:
        assert any(fnmatch(f"static/{name}", pattern) for pattern in patterns), name


def test_no_file_of_the_page_is_long() -> None:
    for each in STATIC.iterdir():
        assert len(each.read_text().splitlines()) <= MAX_LINES, each.name
