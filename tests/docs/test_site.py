"""The documentation site: every page has a place, every link leads somewhere, and nothing is loaded
from another host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.site.built import defects
from tests.docs.site.drawings import UnknownLine, as_tables
from tests.docs.site.links import FENCE, anchors, broken, slug, targets, turned
from tests.docs.site.navigation import listed, navigation
from tests.docs.site.pages import ROOT, Site, assembled, place, written

BESIDE = ("tests/", "config/")
"""The folders whose pages are reached by links only, not by the navigation."""


@pytest.fixture(scope="module")
def site() -> Site:
    return assembled()


def test_every_link_and_anchor_of_the_site_exists(site: Site) -> None:
    assert broken(site.pages, set(site.files)) == []


def test_every_page_has_one_place_in_the_navigation(site: Site) -> None:
    places = list(listed(navigation()))
    assert len(places) == len(set(places))
    assert set(places) <= set(site.pages)
    hand_written = {place(path) for path in written()}
    assert {path for path in hand_written - set(places) if not path.startswith(BESIDE)} == set()


def test_the_navigation_has_the_four_parts() -> None:
    titles = [title for part in navigation() for title in part]
    assert titles == ["Quorate", "Tutorial", "How-to", "Reference", "Explanation"]


def test_every_markdown_file_of_the_repository_is_on_the_site() -> None:
    folders = ("benchmarks", "broker", "cli", "config", "docs", "quorum", "tests")
    found = {str(path.relative_to(ROOT)) for path in ROOT.glob("*.md")}
    for folder in folders:
        found |= {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.md")}
    assert found == set(written())


def test_files_that_pages_link_to_are_shown(site: Site) -> None:
    assert "log.dirs=" in site.pages["config/deployment/broker.properties.md"]
    assert "[leader-kill.toml](chaos/leader-kill.toml.md)" in site.pages["config/chaos.md"]
    assert "````python\nfrom quorate" in site.pages["history.ipynb.md"]
    assert "screenshots/console.png" in site.files


def test_the_site_is_written_as_it_was_assembled(site: Site, tmp_path: Path) -> None:
    site.write(tmp_path)
    assert (tmp_path / "index.md").read_text() == site.pages["index.md"]
    found = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    assert found == {*site.pages, *site.files}


def test_a_list_reads_alike_on_github_and_on_the_site() -> None:
    """The site needs four blanks before an inner item, and an empty line before a list."""
    for path in written():
        before = ""
        for line in FENCE.sub("", (ROOT / path).read_text()).splitlines():
            item = re.match(r"( *)([-*]|\d\d?\.) ", line)
            if item is not None:
                follows = re.match(r" *([-*]|\d\d?\.) |  +|$", before)
                assert follows is not None, f"{path}: an empty line is missing before {line!r}"
                assert len(item[1]) % 4 == 0, f"{path}: {line!r}"
            before = line


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("[a](b.md)", "the site has no b.md"),
        ("[a](#nothing)", "no heading with the anchor nothing"),
        ("[a](other.md#nothing)", "no heading with the anchor nothing"),
        ("![a](b.png)", "the site has no b.png"),
    ],
)
def test_a_broken_link_is_found(page: str, sentence: str) -> None:
    (found,) = broken({"page.md": f"# A\n\n{page}\n", "other.md": "# B\n"}, set())
    assert sentence in found


def test_links_in_code_and_to_other_sites_are_left_alone() -> None:
    page = (
        "`[a](b.md)`\n\n````text\n```\n[a](b.md)\n```\n````\n\n[c](https://example.org)\n[d](d.md)"
    )
    assert list(targets(page)) == ["https://example.org", "d.md"]
    assert turned(page, lambda target: "x" if target == "d.md" else target) == page.replace(
        "(d.md)", "(x)"
    )


def test_anchors_are_those_of_github() -> None:
    assert slug("`quorate console`: a page, and more") == "quorate-console-a-page-and-more"
    assert slug("See [the page](page.md) of A & B") == "see-the-page-of-a--b"
    assert anchors("# A\n\n```sh\n# B\n```\n") == {"a"}


def test_diagrams_become_tables() -> None:
    states = "```mermaid\nstateDiagram-v2\n    [*] --> A : begins\n    A --> B : ends (1)\n```\n"
    assert "| start | A | begins |\n| A | B | ends (1) |\n" in as_tables(states)
    messages = (
        "```mermaid\nsequenceDiagram\n    participant L as leader\n    participant F as follower\n"
        "    alt there is one\n        F->>L: Fetch\n        Note over L: waits\n    end\n```\n"
    )
    assert (
        "|  |  | **alt** there is one |\n| follower | leader | Fetch |\n| leader |  | waits |"
        in (as_tables(messages))
    )


@pytest.mark.parametrize("kind", ["stateDiagram-v2", "sequenceDiagram", "pie"])
def test_a_diagram_with_an_unknown_line_is_refused(kind: str) -> None:
    with pytest.raises(UnknownLine):
        as_tables(f"```mermaid\n{kind}\n    A is odd\n```\n")


@pytest.mark.parametrize(
    ("html", "defect"),
    [
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "loads //example.org/a.css"),
        ('<div class="mermaid">A</div>', "loads https:mermaid"),
        ('<a href="missing.html">A</a>', "links to missing.html"),
        ('<img src="/missing.png">', "links to /missing.png"),
    ],
)
def test_a_defect_of_a_built_page_is_found(html: str, defect: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html)
    (found,) = defects(tmp_path)
    assert defect in found


def test_a_sound_page_has_no_defect(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<a href="https://example.org">A</a> <a href="page.html#b">B</a> <a href="/page.html">C</a>'
    )
    (tmp_path / "style.css").write_text("a { background: url(data:image/png;base64,AA) }")
    assert list(defects(tmp_path)) == []
    (tmp_path / "style.css").write_text("@import 'https://example.org/a.css'")
    assert list(defects(tmp_path)) == ["style.css loads https://example.org/a.css"]


@pytest.mark.long
def test_mkdocs_builds_the_site_without_a_warning_or_a_defect() -> None:
    pytest.importorskip("mkdocs", reason="needs `make docs` or `pip install 'quorate[docs]'`")
    command = [sys.executable, "-m", "tests.docs.site"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "build/site/index.html" in ended.stdout
