"""A headless Chromium, if there is one, that opens a page and reports what a reader sees."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
VARIABLE = "QUORATE_CHROMIUM"
"""The environment variable that names another browser than those in PATH."""

PROBE = """
<script>window.problems = [];
addEventListener('error', event => problems.push(event.message));
console.error = console.warn = text => problems.push(String(text));</script>
"""
MEASURES = """
function channel(text) { return (text.match(/[\\d.]+/g) || []).map(Number); }
function light([r, g, b]) {
  const part = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
}
function ground(node) {
  for (; node; node = node.parentElement) {
    const style = getComputedStyle(node);
    if (style.backgroundImage !== 'none') return null;
    const colour = channel(style.backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
}
function contrasts() {
  const found = [];
  for (const node of document.body.querySelectorAll('*')) {
    const text = [...node.childNodes].some(each => each.nodeType === 3 && each.data.trim());
    if (!text || !node.offsetWidth || ['SCRIPT', 'STYLE'].includes(node.tagName)) continue;
    const style = getComputedStyle(node), behind = ground(node);
    if (!behind || parseFloat(style.fontSize) === 0) continue;
    const [low, high] = [light(channel(style.color)), light(behind)].sort((a, b) => a - b);
    const ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) found.push(node.tagName + ' ' + node.className + ' ' + ratio.toFixed(2));
  }
  return found;
}
"""
"""Functions that measure the contrasts of a page."""
LOOKS = """
function seen(selector) {
  const chart = document.querySelector('.chart').getBoundingClientRect();
  return [...document.querySelectorAll(selector)].filter(node => {
    const box = node.getBoundingClientRect();
    return box.width && box.left >= chart.left - 1 && box.left < chart.right
      && box.top >= chart.top - 1 && box.top < chart.bottom;
  }).length;
}
function view() {
  return {ticks: seen('.axis em'), labels: seen('.lane > span'),
    brokers: seen('.head .lane > span')};
}
function settle() {
  const chart = document.querySelector('.chart');
  const result = {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    contrasts: contrasts(), plain: view(),
    cut: [...document.querySelectorAll('.axis em')].filter(node =>
      node.getBoundingClientRect().bottom
        > node.parentElement.getBoundingClientRect().bottom + 1).length,
    ground: getComputedStyle(document.body).backgroundColor,
  };
  const zoom = document.querySelector('input[data-zooms]');
  zoom.value = 10; zoom.dispatchEvent(new Event('input'));
  chart.scrollLeft = chart.scrollWidth / 3; chart.scrollTop = chart.scrollHeight / 2;
  chart.dispatchEvent(new Event('scroll'));
  result.zoomed = view();
  const filter = document.querySelector('input[data-filters]');
  filter.value = document.querySelector('#availability tbody td').textContent;
  filter.dispatchEvent(new Event('input'));
  result.worst = seenLanes();
  filter.value = 'nothing has this name'; filter.dispatchEvent(new Event('input'));
  result.nothing = seenLanes();
  result.said = document.querySelector('.none').offsetHeight > 0;
  result.problems = problems;
  const out = document.createElement('pre');
  out.id = 'probe'; out.textContent = JSON.stringify(result);
  document.body.append(out);
}
function seenLanes() {
  return [...document.querySelectorAll('#lanes .rule ~ .lane')].filter(each => !each.hidden).length;
}
settle();
"""
REPORT = f"<script>{MEASURES}{LOOKS}</script>"


def find_browser() -> str | None:
    """Return the path of a headless browser, or None if there is none."""
    named = os.environ.get(VARIABLE)
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


def look_at(
    page: str, browser: str, width: int, *, dark: bool = False, report: str = REPORT
) -> dict[str, Any]:
    """Return what the page looks like in a window of this width, in CSS pixels.

    `report` is the script that appends the result as JSON in an element with the id `probe`."""
    probed = page.replace("<head>", f"<head>{PROBE}", 1).replace("</body>", f"{report}</body>", 1)
    with TemporaryDirectory() as directory:
        file = Path(directory) / "page.html"
        file.write_text(probed)
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom")
        theme = ("--blink-settings=preferredColorScheme=0",) if dark else ()
        made = subprocess.run(
            [
                browser, *options, *theme, f"--window-size={width},900",
                f"--user-data-dir={directory}/profile", "--virtual-time-budget=3000",
                f"file://{file}",
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    found = re.search(r'<pre id="probe">(.*?)</pre>', made.stdout, re.DOTALL)
    assert found, made.stdout[-2000:] + made.stderr[-2000:]
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen
