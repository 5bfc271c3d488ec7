"""Makes the pictures of the report in docs/screenshots anew: `python -m tests.docs.screenshots`.

It needs a Chromium and Java. The history is that of the Kafka 4.1.1 fixture. No test runs this
module, because pictures differ with the fonts of the machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from quorate.quorum.analytics import write_report
from tests.unit.analytics.browser import find_browser

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "screenshots"
LOG = Path("tests/fixtures/kafka-4.1.1-metadata/c1")
DARK = ("--blink-settings=preferredColorScheme=0",)
A4_WIDTH = 718
"""The width of A4 paper without its margins, in CSS pixels."""


def main() -> None:
    """Write the page once, and take its pictures: light, dark and as it is printed."""
    with TemporaryDirectory() as directory:
        page = Path(directory) / "page.html"
        write_report(LOG, page)
        picture(page, "history-report.png", (1280, 1240))
        picture(page, "history-report-dark.png", (1100, 1000), *DARK)
        printed = page.with_name("printed.html")
        printed.write_text(page.read_text().replace("@media print", "@media all"))
        picture(printed, "history-report-print.png", (A4_WIDTH, 1600))


def picture(page: Path, name: str, size: tuple[int, int], *options: str) -> None:
    """Take the picture of the upper part of a page, in a window of this width and height."""
    browser = find_browser()
    if browser is None:
        raise SystemExit("no headless Chromium was found")
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options,
        f"--window-size={size[0]},{size[1]}", f"--user-data-dir={page.parent}/profile",
        f"--screenshot={PICTURES / name}", f"file://{page}",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
