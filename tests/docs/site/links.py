"""The links of a Markdown page: where they are, what they point at, and how they are turned."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

FENCE = re.compile(r"^ *(?P<fence>`{3,}).*?^ *(?P=fence)$", re.MULTILINE | re.DOTALL)
CODE_OR_LINK = re.compile(
    rf"{FENCE.pattern}|`[^`\n]+`|\]\((?P<link>[^)\s]+)\)", re.MULTILINE | re.DOTALL
)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
LINK_TEXT = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def targets(text: str) -> Iterator[str]:
    """Yield the targets of the links and images of a page, without those in code."""
    for found in CODE_OR_LINK.finditer(text):
        if found["link"]:
            yield found["link"]


def turned(text: str, turn: Callable[[str], str]) -> str:
    """Return the page with each target of a link replaced by `turn(target)`."""

    def replaced(found: re.Match[str]) -> str:
        return f"]({turn(found['link'])})" if found["link"] else found[0]

    return CODE_OR_LINK.sub(replaced, text)


def is_internal(target: str) -> bool:
    """Return True if the target is a file of the site or a heading, and not another site."""
    return not re.match(r"[a-z]+:", target)


def resolved(page: str, target: str) -> tuple[str, str]:
    """Return the path and the anchor that a target of `page` points at.

    Paths are relative to the root, with slashes. The anchor is empty if the target has none."""
    path, _, anchor = target.partition("#")
    if not path:
        return page, anchor
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), anchor


def relative(page: str, path: str, anchor: str) -> str:
    """Return the target with which `page` points at a path and an anchor, which may be empty."""
    target = posixpath.relpath(path, posixpath.dirname(page) or ".")
    return f"{target}#{anchor}" if anchor else target


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and the site name them."""
    return {slug(heading) for heading in HEADING.findall(FENCE.sub("", text))}


def slug(heading: str) -> str:
    """Return the anchor of a heading: lower case, a hyphen for each blank, no punctuation."""
    text = LINK_TEXT.sub(r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def broken(pages: dict[str, str], files: set[str]) -> list[str]:
    """Return a sentence for each link between the pages that leads nowhere.

    `pages` are the texts by path. `files` are the paths of the other files of the site."""
    return [
        sentence
        for page, text in pages.items()
        for target in targets(text)
        if is_internal(target) and (sentence := _why_broken(page, target, pages, files)) is not None
    ]


def _why_broken(page: str, target: str, pages: dict[str, str], files: set[str]) -> str | None:
    path, anchor = resolved(page, target)
    if path in files:
        return None
    if path not in pages:
        return f"{page} links to {target}, but the site has no {path}"
    if anchor and anchor not in anchors(pages[path]):
        return f"{page} links to {target}, but {path} has no heading with the anchor {anchor}"
    return None
