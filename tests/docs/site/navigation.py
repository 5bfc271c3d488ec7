"""The navigation of the site: the four parts and their pages, as `docs/mkdocs.yml` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from tests.docs.site.pages import ROOT

CONFIG = ROOT / "docs" / "mkdocs.yml"


def navigation() -> list[dict[str, Any]]:
    """Return the list of the parts. Each maps its title to a page, or to a list of pages."""
    # BaseLoader reads the names of mkdocs' functions as text, and calls nothing.
    parts: list[dict[str, Any]] = yaml.load(CONFIG.read_text(), yaml.BaseLoader)["nav"]
    return parts


def listed(entry: object) -> Iterator[str]:
    """Yield the paths of the pages in an entry of the navigation, at any depth."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for each in entry.values():
            yield from listed(each)
    elif isinstance(entry, list):
        for each in entry:
            yield from listed(each)
