"""The wheel, installed in an environment of its own, in a project whose packages have the names of
Quorate's folders.

Nothing is downloaded. The environment finds the dependencies through a .pth file, in which editable
installs have no effect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("quorate", "quorum", "broker", "cli", "config", "pyproject.toml", "README.md", "LICENSE")

PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n',
    "config/__init__.py": "NAME = 'the project'\n",
    "cli/__init__.py": "from config import NAME\n",
    "broker/__init__.py": "from cli import NAME\n",
    "quorum.py": "from broker import NAME\n",
    "tests/__init__.py": "",
    "tests/test_names.py": """
import quorum


def test_this_projects_packages_are_its_own(quorate_cluster):
    assert quorum.NAME == "the project"
    quorate_cluster.create_topic("orders")
    assert quorate_cluster.leader("orders") in quorate_cluster.broker_ids
""",
    "tests/test_shapes.py": """
import pytest

from quorate.testing import LocalCluster, NodeFailed


@pytest.mark.quorate(controllers=3, brokers=1, config={"num.partitions": 2})
def test_a_marker_shapes_the_cluster(quorate_cluster):
    assert (quorate_cluster.controller_ids, quorate_cluster.broker_ids) == ([1, 2, 3], [4])


@pytest.fixture(scope="module")
def kafka(quorate_cluster_factory):
    return quorate_cluster_factory(brokers=2)


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_fixture_of_ones_own_lives_longer(kafka, name):
    assert kafka.broker_ids == [2, 3]
    kafka.create_topic(name)
    assert name == "one" or kafka.image.topic("one") is not None
""",
    "tests/test_failing.py": """
def test_a_node_fails(quorate_cluster):
    node = quorate_cluster._cluster._nodes[2]
    node.running.core.seams.clock.call_soon(lambda: [][0])
""",
    "tests/test_asyncio.py": """
import pytest

from quorate.testing import LocalCluster

pytest.importorskip("pytest_asyncio")


@pytest.mark.asyncio
async def test_on_the_loop_of_the_test():
    async with LocalCluster() as cluster:
        await cluster.create_topic("orders")


@pytest.mark.asyncio
async def test_the_fixture_in_an_asynchronous_test(quorate_cluster):
    quorate_cluster.create_topic("payments")
""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the project. The environment is next to it."""
    base = tmp_path_factory.mktemp("installed")
    source, project, environment = base / "source", base / "project", base / "environment"
    source.mkdir()
    compiled = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=compiled)
        else:
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(base), str(source)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = base.glob("quorate-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    install = ["--python", python, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    site = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name, text in PROJECT.items():
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return project


def shipped_files(source: Path) -> set[str]:
    """Return the paths of all files of the import package, which contains links to folders."""
    return {
        str(Path(directory, name).relative_to(source))
        for directory, _, names in os.walk(source / "quorate", followlinks=True)
        for name in names
        if Path(directory).name != "__pycache__"
    }


def test_the_wheel_has_every_file_of_the_package(project: Path) -> None:
    (wheel,) = project.parent.glob("quorate-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (file,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(file).decode()
    info = {name for name in names if ".dist-info/" in name}
    assert names - info == shipped_files(project.parent / "source")
    assert any(name.endswith("licenses/LICENSE") for name in info)
    for line in (
        "License-Expression: ",
        "Requires-Python: >=",
        "Provides-Extra: spark",
        "Keywords",
    ):
        assert f"\n{line}" in metadata
    assert "# Quorate" in metadata, "the README is the description"


def test_the_source_distribution_has_every_file_of_the_wheel(project: Path) -> None:
    base = project.parent
    build = "from setuptools import build_meta; build_meta.build_sdist('..')"
    subprocess.run(
        [sys.executable, "-c", build], cwd=base / "source", check=True, capture_output=True
    )
    (sdist,) = base.glob("quorate-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {each.name.partition("/")[2] for each in archive if each.isfile()}
    assert shipped_files(base / "source") <= names
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names


NO_OTHERS = [f"-pno:{name}" for name in ("asyncio", "xdist", "timeout", "hypothesispytest")]
OTHERS = ["-oasyncio_default_fixture_loop_scope=function"]  # unset, it is a warning


def run_pytest(
    project: Path, *arguments: str, others: Sequence[str] = OTHERS
) -> subprocess.CompletedProcess[str]:
    """Run pytest in the project with the environment's Python, and return the ended process."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [project.parent / "environment/bin/python", "-m", "pytest", "-q", *others, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_without_other_plugins(project: Path) -> None:
    tests = ("tests/test_names.py", "tests/test_shapes.py")
    ended = run_pytest(project, *tests, others=NO_OTHERS)
    assert "4 passed" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.long
def test_with_asyncio_and_in_parallel(project: Path) -> None:
    ended = run_pytest(project, "-n", "2", "tests/test_names.py", "tests/test_asyncio.py")
    assert "3 passed" in ended.stdout, ended.stdout + ended.stderr


def test_a_node_that_fails_is_an_error_of_the_test(project: Path) -> None:
    ended = run_pytest(project, "tests/test_failing.py")
    assert "1 passed, 1 error" in ended.stdout, ended.stdout + ended.stderr
    assert "NodeFailed: node 2 failed: IndexError" in ended.stdout


def test_one_cluster_for_all_tests_by_ini_option(project: Path) -> None:
    options = ("-o", "quorate_scope=session", "-o", "quorate_brokers=1")
    ended = run_pytest(
        project, *options, "--setup-show", "tests/test_names.py", "tests/test_asyncio.py"
    )
    assert "3 passed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.stdout.count("SETUP    S quorate_cluster") == 1


def test_nothing_is_imported_before_a_test_asks_for_a_cluster(project: Path) -> None:
    script = "import sys, quorate.pytest_plugin; print({'asyncio', 'aiohttp'} & {*sys.modules})"
    python = project.parent / "environment/bin/python"
    ended = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_the_readme_runs_as_written(project: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("## Test an application\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        (project / f"test_readme_{number}.py").write_text(block)
    ended = run_pytest(project, "test_readme_0.py", "test_readme_1.py")
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr
