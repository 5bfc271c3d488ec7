"""The commands of the tutorial and of the how-tos run as they are printed, and print what the pages
show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.deployment.test_monitoring import refuse_unless_parsed
from tests.docs.printed_commands import Block, blocks, matches, run_page, shell
from tests.docs.site.pages import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"
HOW_TOS = sorted((ROOT / "docs" / "howto").glob("*.md"))
PAGES = [TUTORIAL, *HOW_TOS]
QUICK = ("read-a-kafka-log",)
"""The pages that start no node."""
COMMANDS = sorted(
    {
        line
        for page in PAGES
        for block in blocks(page.read_text())
        for line in re.findall(
            r"^quorate .*?(?= > | < | \|\| |$)", block.commands.replace("\\\n", ""), re.MULTILINE
        )
    }
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page.stem in QUICK else [pytest.mark.long], id=page.stem)
        for page in PAGES
    ],
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_and_option_of_a_page_exists(line: str) -> None:
    refuse_unless_parsed(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_most_commands_of_a_page_are_run(page: Path) -> None:
    found = blocks(page.read_text())
    not_run = [block for block in found if block.not_run]
    assert len(found) > 2 * len(not_run)
    assert page.read_text().count("```sh\n") == len(found)
    assert page.read_text().count("<!-- not run:") == len(not_run)


def test_a_block_has_its_output_and_its_exclusion() -> None:
    page = (
        "```sh\na\nb\n```\n\n```text\nc\n```\n\nText.\n\n"
        "<!-- not run: it needs root -->\n```sh\nd\n```\n\nText.\n\n```text\ne\n```\n\n"
        "```sh\nf\n```\n\n<!-- not run: no -->\n```sh\ng\n```\n"
    )
    assert blocks(page) == [
        Block("a\nb\n", "c\n", None),
        Block("d\n", None, "it needs root"),
        Block("f\n", None, None),
        Block("g\n", None, "no"),
    ]


@pytest.mark.parametrize(
    ("shown", "output", "expected"),
    [
        ("a\nb\n", "x\na\nb\nc\n", True),
        ("a\nb\n", "a\nx\nb\n", False),
        ("a\nb\n", "a\nasking the cluster: 12 s\nb\n", True),
        ("a\n...\nb\n", "a\nx\ny\nb\n", True),
        ("a\n...\nb\n", "a\nb\n", True),
        ("a\n...\nb\n", "b\na\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("a\tb\n", "a  b \n", True),
        ("a\n", "aa\n", False),
        ("...\n", "", True),
    ],
)
def test_output_is_compared_with_what_the_page_shows(
    shown: str, output: str, expected: bool
) -> None:
    assert matches(shown, output) is expected


def test_only_blocks_without_a_change_are_repeated() -> None:
    assert Block("quorate status\n", None, None).only_looks
    assert Block("quorate topics -b b1:9092 --describe --topic orders\n", None, None).only_looks
    assert not Block("quorate status\nquorate down\n", None, None).only_looks
    assert not Block("quorate topics --delete --topic describe\n", None, None).only_looks


def test_a_block_that_fails_or_prints_something_else_is_found(tmp_path: Path) -> None:
    with shell(tmp_path) as bash:
        bash.run(Block("A=1\necho one\n", "one\n", None))
        bash.run(Block("echo $A\n", "1\n", None))
        with pytest.raises(AssertionError, match="expected:\ntwo"):
            bash.run(Block("echo one\n", "two\n", None))
        with pytest.raises(AssertionError, match="but got"):
            bash.run(Block("false\necho one\n", "one\n", None))
        config = "config/deployment/broker.properties"
        bash.run(Block(f"grep -c 909[2] {config} || echo none\n", "0\nnone\n", None))
