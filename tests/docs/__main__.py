"""`make docs`: write the generated parts of all pages, and name the pages that changed."""

from __future__ import annotations

import sys

from tests.docs import dashboards, metrics, tables
from tests.docs.generated import PAGES, ROOT, filled


def main() -> None:
    """Fill the markers of every page, and write the pages of the tables and of the
    metrics, and the dashboards."""
    made = {page: filled(page.read_text()) for page in PAGES}
    made[tables.PAGE] = tables.page()
    made.update(dashboards.files())
    made[metrics.PAGE] = metrics.page()
    for page, new in made.items():
        if not page.exists() or page.read_text() != new:
            page.write_text(new)
            sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")


main()
