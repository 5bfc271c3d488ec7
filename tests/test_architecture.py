"""The layering and purity that ARCHITECTURE.md states, and the size limits of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = ("config", "quorum", "broker", "cli")
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 400

PURE = (
    "quorum/seams.py",
    "quorum/ids.py",
    "quorum/node_message_bounds.py",
    "quorum/shapes.py",
    "quorum/incremental_work.py",
    "quorum/histogram.py",
    "quorum/clipped.py",
    "quorum/principal.py",
    "quorum/state_in_doubt.py",
    "quorum/raft",
    "quorum/metadata",
    "quorum/authorization",
    "quorum/quotas",
    "quorum/sasl",
    "quorum/controller",
    "quorum/log",
    "quorum/protocol",
    "broker/compaction",
    "broker/partition",
    "broker/groups",
)
IMPURE = {
    "quorum/log/disks/disk.py": "the operating system's implementation of the Disk seam",
    "quorum/log/disks/os_file.py": "its files",
    "quorum/log/disks/descriptors.py": "their descriptors",
}
IMPURE_MODULES = {
    "aiohttp",
    "asyncio",
    "concurrent",
    "os",
    "random",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
    "uvloop",
}

# Each group of quorum/ imports only what stands above it, and its own group.
QUORUM_ORDER = (
    (
        "seams",
        "node_message_bounds",
        "ids",
        "shapes",
        "incremental_work",
        "histogram",
        "clipped",
        "principal",
        "state_in_doubt",
        "unfrozen",
        "open_files",
        "directory_ids",
        "log_limit",
    ),
    ("protocol",),
    ("log",),
    ("raft",),
    ("metadata",),
    ("authorization",),
    ("quotas", "sasl"),
    ("controller",),
    ("clock", "rpc"),
    ("faults",),
    ("watch",),
    ("node",),
    ("offline",),
    ("secured",),
    ("analytics",),
)


def sources() -> list[Path]:
    return [path for top in TOP for path in sorted((ROOT / top).rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} relative import"
            yield node.lineno, node.module or ""


def quorum_rank(module: str) -> int | None:
    """Place of a dotted module below `quorate.quorum.` in QUORUM_ORDER; the longest prefix wins."""
    found: tuple[int, int] | None = None
    for rank, group in enumerate(QUORUM_ORDER):
        for prefix in group:
            if (module + ".").startswith(prefix + "."):
                found = max(found or (0, 0), (len(prefix), rank))
    return None if found is None else found[1]


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_each_top_folder_imports_only_what_stands_below_it(path: Path) -> None:
    own = TOP.index(path.relative_to(ROOT).parts[0])
    for line, module in imports(path):
        parts = module.split(".")
        assert parts[0] not in TOP, f"{name_of(path)}:{line} imports {module}: say quorate.{module}"
        if parts[0] == "quorate" and len(parts) > 1 and parts[1] in TOP:
            assert TOP.index(parts[1]) <= own, f"{name_of(path)}:{line} imports {module}"
        assert parts[0] != "tests", f"{name_of(path)}:{line} imports {module}"


def test_quorum_is_layered() -> None:
    """Every folder and module of quorum/ has a place in QUORUM_ORDER."""
    for path in sorted((ROOT / "quorum").rglob("*.py")):
        dotted = ".".join(path.relative_to(ROOT / "quorum").with_suffix("").parts)
        if dotted == "__init__":
            continue
        own = quorum_rank(dotted)
        assert own is not None, f"{name_of(path)} has no place in QUORUM_ORDER"
        for line, module in imports(path):
            if module.startswith("quorate.quorum."):
                other = quorum_rank(module.removeprefix("quorate.quorum."))
                assert other is not None, f"{name_of(path)}:{line} imports {module}"
                assert other <= own, f"{name_of(path)}:{line} imports {module}"


def test_the_core_is_pure() -> None:
    for path in sources():
        name = name_of(path)
        if name in IMPURE or not any(name == pure or name.startswith(f"{pure}/") for pure in PURE):
            continue
        for line, module in imports(path):
            assert module.split(".")[0] not in IMPURE_MODULES, f"{name}:{line} imports {module}"


def module_of(path: Path) -> str:
    """Return the dotted name under which the module is imported."""
    dotted = ".".join(("quorate", *path.relative_to(ROOT).with_suffix("").parts))
    return dotted.removesuffix(".__init__")


def module_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports: at the top, in functions, or for types only."""
    modules = {module_of(path) for path in sources()}
    graph: dict[str, set[str]] = {}
    for path in sources():
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    names.add(submodule if submodule in modules else node.module)
        graph[module_of(path)] = (names & modules) - {module_of(path)}
    return graph


def folder_graph(modules: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the folders whose modules each folder imports. An __init__ belongs to its folder."""
    folders = {module_of(path): name_of(path.parent) for path in sources()}
    graph: dict[str, set[str]] = {}
    for module, imported in modules.items():
        own = folders[module]
        graph.setdefault(own, set()).update({folders[each] for each in imported} - {own})
    return graph


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return the nodes of one cycle, or an empty list if the graph has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def test_no_modules_or_folders_import_each_other() -> None:
    """Imports in functions and for types only count, too: a reader has to follow them as well."""
    modules = module_graph()
    assert cycle_in(modules) == []
    assert cycle_in(folder_graph(modules)) == []


def test_a_cycle_of_imports_is_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(cycle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
    graph = module_graph()
    graph["quorate.quorum.watch.endpoints"].add("quorate.quorum.node.node_core")
    assert "quorate.quorum.node.node_core" in cycle_in(graph)
    assert {"quorum/watch", "quorum/node"} <= set(cycle_in(folder_graph(graph)))


def test_functions_fit_a_screen_and_files_a_sitting() -> None:
    too_long = []
    for path in sources():
        text = path.read_text()
        if text.count("\n") > MAX_FILE_LINES:
            too_long.append(f"{name_of(path)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size > MAX_FUNCTION_LINES:
                    too_long.append(f"{name_of(path)}:{node.lineno} {node.name}: {size} lines")
    assert not too_long, "\n".join(too_long)


README = (ROOT / "tests/README.md").read_text()


def test_the_readme_of_the_tests_has_a_line_for_each_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*") if path.is_file()}
    missing = {name for name in folders - {"__pycache__"} if f"\n| `{name}/` |" not in README}
    assert not missing, f"tests/README.md has no line for {sorted(missing)}"


def test_the_readme_of_the_tests_names_harnesses_that_exist() -> None:
    rows = [line.split("|")[1:3] for line in README.splitlines() if ".py` |" in line]
    assert rows
    for names, places in rows:
        texts = [(ROOT / "tests" / path).read_text() for path in re.findall(r"`(.+?)`", places)]
        for name in re.findall(r"`(.+?)`", names):
            assert any(re.search(rf"^(class|def) {name}\b", text, re.M) for text in texts), name
