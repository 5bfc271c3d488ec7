"""`make docs`: write the generated parts of all pages, and name the pages that changed."""

from __future__ import annotations

import sys

from tests.docs.generated import PAGES, ROOT, filled


def main() -> None:
    """Fill the markers of every page."""
    for page in PAGES:
        old = page.read_text()
        new = filled(old)
        if new != old:
            page.write_text(new)
            sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")


main()
