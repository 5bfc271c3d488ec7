"""The pages of the site: the Markdown files of the repository, the files that they link to, and the
pages that are made from the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.reference import commands, errors, keys, keys_without_effect
from tests.docs.site import source_files
from tests.docs.site.drawings import as_tables
from tests.docs.site.links import is_internal, relative, resolved, turned

ROOT = Path(__file__).parents[3]
HOME = "README.md"
OUTSIDE_OF_DOCS = (
    HOME,
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "tests/README.md",
    "tests/fixtures/README.md",
    "tests/long_lived/containers.md",
    "tests/scenarios/README.md",
    "tests/sim/README.md",
)
IMAGES = (".png",)
MADE = (commands, keys, keys_without_effect, errors)
"""The modules that make pages from the code."""


@dataclass
class Site:
    """The assembled site. `pages` are texts and `files` are paths in the repository, both by their
    path on the site."""

    pages: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write all pages and files below a directory that is empty or does not exist."""
        for path, text in self.pages.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text)
        for path, source in self.files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(source.read_bytes())


def written() -> list[str]:
    """Return the paths, in the repository, of the Markdown files that the site shows."""
    docs = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    return [*OUTSIDE_OF_DOCS, *docs]


def place(path: str) -> str:
    """Return the path on the site of a file of the repository."""
    return "index.md" if path == HOME else path.removeprefix("docs/")


def assembled() -> Site:
    """Return the site with turned links. A link that leads nowhere stays as it is."""
    site = Site()
    for module in MADE:
        site.pages.update(module.pages())
    sources = written()
    shown: list[str] = []
    for path in sources:

        def turn(target: str, path: str = path) -> str:
            if not is_internal(target):
                return target
            aim, anchor = resolved(path, target)
            if aim not in sources and (ROOT / aim).exists():
                if aim.endswith(IMAGES):
                    site.files[place(aim)] = ROOT / aim
                else:
                    shown.append(aim)
                    aim = source_files.page_name(aim)
            return relative(place(path), place(aim), anchor)

        site.pages[place(path)] = turned(as_tables((ROOT / path).read_text()), turn)
    while shown:
        path = shown.pop()
        site.pages[place(source_files.page_name(path))] = source_files.page(ROOT, path)
        shown.extend(source_files.files_below(ROOT, path))
    return site
