"""Pages for files that are not Markdown: configs, scenarios, a notebook, and folders of them."""

from __future__ import annotations

import json
from pathlib import Path

LANGUAGES = {".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".json": "json", ".sh": "bash"}
"""The language of a file by its suffix. A file with another suffix is shown as properties."""


def page_name(path: str) -> str:
    """Return the path of the page that shows a file or a folder."""
    return f"{path}.md"


def page(root: Path, path: str) -> str:
    """Return the page that shows the file or folder `path` below `root`."""
    shown = root / path
    if shown.is_dir():
        return _of_folder(shown)
    if shown.suffix == ".ipynb":
        return _of_notebook(shown)
    return f"# {shown.name}\n\n{_fenced(shown.read_text(), LANGUAGES.get(shown.suffix, 'ini'))}"


def files_below(root: Path, path: str) -> list[str]:
    """Return the paths of the files and folders that the page of a folder lists, or nothing if
    `path` is a file."""
    folder = root / path
    if not folder.is_dir():
        return []
    return [f"{path}/{each.name}" for each in _shown(folder)]


def _shown(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith(("__", ".")))


def _of_folder(folder: Path) -> str:
    links = [f"- [{each.name}]({folder.name}/{page_name(each.name)})" for each in _shown(folder)]
    return "\n".join([f"# {folder.name}", "", *links, ""])


def _of_notebook(path: Path) -> str:
    parts = [f"# {path.name}"]
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(f"#{source}" if source.startswith("#") else source)
            continue
        parts.append(_fenced(source, "python"))
        outputs = ("".join(each["data"]["text/plain"]) for each in cell["outputs"])
        parts.extend(_fenced(each, "text") for each in outputs)
    return "\n\n".join(parts) + "\n"


def _fenced(text: str, language: str) -> str:
    """Return a text as a block that may itself contain blocks."""
    return f"````{language}\n{text.rstrip()}\n````\n"
