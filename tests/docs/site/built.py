"""The built HTML: it makes no request to another host, and its links lead to files.

Every address that a browser loads by itself is checked: scripts, styles, images, fonts and frames.
A link that a reader must click may lead to another site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
"""The attributes whose address a browser loads without a click."""
NOT_LOADED = {"canonical", "prev", "next"}
"""The kinds of <link> whose address a browser does not load."""
IN_STYLES = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")
DRAWN_BY_SCRIPT = "mermaid"
"""The class of a block for which the theme loads a script from another host."""


class Addresses(HTMLParser):
    """Collects the addresses of one page that a browser loads, and the targets of its links."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of one element."""
        values = {name: value or "" for name, value in attrs}
        if DRAWN_BY_SCRIPT in values.get("class", "").split():
            self.loaded.append(f"https:{DRAWN_BY_SCRIPT}")
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") in NOT_LOADED:
            return
        self.loaded.extend(value for name, value in values.items() if (tag, name) in LOADED)


def defects(site: Path) -> Iterator[str]:
    """Yield a sentence for each request to another host and for each link without a file."""
    for page in sorted(site.rglob("*.html")):
        read = Addresses()
        read.feed(page.read_text())
        for address in read.loaded:
            if is_elsewhere(address):
                yield f"{page.relative_to(site)} loads {address}"
        for address in (*read.links, *read.loaded):
            path = unquote(urlsplit(address).path)
            # The page for errors names files from the root of the site.
            file = site / path[1:] if path.startswith("/") else page.parent / path
            if path and not is_elsewhere(address) and not file.exists():
                yield f"{page.relative_to(site)} links to {address}, which does not exist"
    for style in sorted(site.rglob("*.css")):
        for found in IN_STYLES.finditer(style.read_text()):
            address = found[1] or found[2]
            if is_elsewhere(address) and not address.startswith("data:"):
                yield f"{style.relative_to(site)} loads {address}"


def is_elsewhere(address: str) -> bool:
    """Return True if an address names another host, or a scheme of its own."""
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc)
