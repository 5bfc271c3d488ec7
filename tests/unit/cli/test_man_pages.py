"""`quorate man-pages` writes a page for each command, with all that its --help prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.cli.manual.command import pages
from quorate.cli.manual.description import Described, Paragraph, described
from quorate.cli.manual.roff import escaped, man_page, text

COMMANDS = list(described(main))
PAGES = pages(main, "1.0")


def squeezed(shown: str) -> str:
    """Return the text without blanks, which depend on the width of a page."""
    return re.sub(r"\s+", "", shown)


def test_every_command_has_a_page_and_no_hidden_one_has() -> None:
    assert set(PAGES) == {each.path.replace(" ", "-") + ".1" for each in COMMANDS}
    assert {"quorate.1", "quorate-topics.1", "quorate-storage-format.1"} <= set(PAGES)
    listed = CliRunner().invoke(main, ["--help"]).output
    named = re.findall(r"^  ([a-z][a-z-]+)  ", listed.partition("Commands:")[2], re.MULTILINE)
    assert {each.path.split()[1] for each in COMMANDS if " " in each.path} == set(named)


def test_every_page_has_the_options_of_help() -> None:
    for each in COMMANDS:
        assert ("-h, --help", "Show this message and exit.") in each.options, each.path
    assert r"\fB\-h, \-\-help\fR" in PAGES["quorate-topics.1"]


def test_every_positional_argument_is_described() -> None:
    for each in COMMANDS:
        for name, description in each.arguments:
            assert description.endswith("."), (each.path, name)
            assert name in each.usage, (each.path, name)
    page = PAGES["quorate-cluster-decommission.1"]
    assert ".SH ARGUMENTS\n.TP\n\\fBID\\fR\nThe node.id of the broker.\n" in page


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    directory = tmp_path / "share" / "man1"
    done = CliRunner().invoke(main, ["man-pages", str(directory)])
    assert done.exit_code == 0, done.output
    assert done.output == f"wrote {len(PAGES)} man pages to {directory}\n"
    assert {each.name for each in directory.iterdir()} == set(PAGES)


def test_a_directory_that_cannot_be_written_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "man1"
    done = CliRunner().invoke(main, ["man-pages", str(directory)])
    assert done.exit_code == 1
    assert str(directory) in done.output


def test_text_cannot_be_taken_for_a_request_of_roff() -> None:
    assert escaped(".TH is no request") == r"\&.TH is no request"
    assert escaped(r"'a\b' --all") == r"\&'a\eb' \-\-all"
    assert text("`quorate up` runs") == r"\fBquorate up\fR runs"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_no_warning_and_shows_every_option_and_example() -> None:
    for each in COMMANDS:
        page = PAGES[each.path.replace(" ", "-") + ".1"]
        shown = formatted(page)
        for names, _ in each.options:
            assert squeezed(names) in squeezed(shown), (each.path, names)
        for example in each.examples:
            assert squeezed(example) in squeezed(shown), (each.path, example)


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_shows_lines_that_look_like_requests() -> None:
    odd = Described(
        path="quorate odd",
        usage="quorate odd",
        paragraphs=(Paragraph(".first \\fBword", False), Paragraph("'kept\n.lines", True)),
        arguments=(("FILE", "'first"),),
        options=(("--odd", "'quoted' first"),),
        examples=(),
        commands=(),
    )
    shown = formatted(man_page(odd, [], "1.0"))
    for each in ("'first", ".first \\fBword", "'kept", ".lines", "'quoted' first"):
        assert each in shown


def formatted(page: str) -> str:
    """Return the page as plain text. Fail if groff warns of anything."""
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tascii", "-rHY=0", "-rLL=300n", "-P-cbou"],
        input=page,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout
