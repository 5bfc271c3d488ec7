"""`make docs`: assemble the pages of the site, let mkdocs build it, and check the result.

Without mkdocs, the command ends after the pages were assembled and their links checked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

from tests.docs.site.built import defects
from tests.docs.site.links import broken
from tests.docs.site.navigation import CONFIG
from tests.docs.site.pages import ROOT, assembled

PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
MKDOCS = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file"]


def main() -> None:
    """Build the site. End with status 1 and the defects if it has any."""
    site = assembled()
    refuse_if(broken(site.pages, set(site.files)))
    shutil.rmtree(PAGES, ignore_errors=True)
    site.write(PAGES)
    if find_spec("mkdocs") is None:
        sys.exit(f"wrote {PAGES}, but mkdocs is missing: pip install 'quorate[docs]'")
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme
    subprocess.run([*MKDOCS, str(CONFIG)], check=True, cwd=ROOT, env=quiet)
    refuse_if(list(defects(SITE)))
    sys.stdout.write(f"built {SITE / 'index.html'}\n")


def refuse_if(sentences: list[str]) -> None:
    """End the process with the sentences, one on each line, if there are any."""
    if sentences:
        sys.exit("\n".join(sentences))


main()
