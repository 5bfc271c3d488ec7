"""The pytest fixtures `quorate_cluster`, `quorate_cluster_factory`, and `chaos_run`.

pytest loads this module wherever Quorate is installed. Therefore it imports nothing else of Quorate
before a test requests a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from quorate.cli.chaos.results.result import Result
    from quorate.testing import LocalCluster, ThreadedCluster

Scope = Literal["function", "class", "module", "package", "session"]
SCOPES = ("function", "class", "module", "package", "session")
"""The scopes of pytest, which are the allowed values of `quorate_scope`."""

OPTIONS = {
    "quorate_controllers": ("1", "number of controllers of quorate_cluster"),
    "quorate_brokers": ("3", "number of brokers of quorate_cluster"),
    "quorate_scope": ("function", f"scope of quorate_cluster: {', '.join(SCOPES)}"),
}
"""Default and help text of the ini options with a single value, by name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options of the fixtures."""
    for name, (default, help_text) in OPTIONS.items():
        parser.addini(name, help_text, default=default)
    parser.addini(
        "quorate_config",
        "properties of all nodes, one KEY=VALUE per line",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the `quorate` marker."""
    config.addinivalue_line(
        "markers",
        "quorate(controllers=, brokers=, config=, dir=, secure=): arguments of LocalCluster for "
        "quorate_cluster",
    )


def scope(fixture_name: str, config: pytest.Config) -> Scope:
    """Return the scope of `quorate_cluster` from the ini file.

    Raise UsageError if it is invalid."""
    value = config.getini("quorate_scope")
    if value not in SCOPES:
        raise pytest.UsageError(f"quorate_scope: value {value!r} must be one of {SCOPES}")
    return cast(Scope, value)


@pytest.fixture(scope=scope)
def quorate_cluster(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster]:
    """A running cluster: one controller and three brokers by default.

    The options of the ini file (`quorate_controllers` and others) change that. So does
    `@pytest.mark.quorate(...)` with arguments of `LocalCluster`. If `quorate_scope` is wider than
    `function`, only a marker of that class, module or package counts, not one of a single test.

    If a node fails by itself, every later call raises NodeFailed, and so does the end of the
    fixture."""
    marker = request.node.get_closest_marker("quorate")
    with made(request.config, {} if marker is None else marker.kwargs) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def quorate_cluster_factory(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., ThreadedCluster]]:
    """A function that starts a cluster with the keyword arguments of `LocalCluster`.

    Missing arguments come from the ini file, and the `quorate` marker has no effect. The clusters
    run until the end of the session."""
    with ExitStack() as running:
        yield lambda **wanted: running.enter_context(made(request.config, wanted))


@pytest.fixture
def chaos_run() -> Callable[..., Result]:
    """The function `quorate.testing.chaos_run`, which runs a failure scenario on new processes.

    The test fails if the verdict is bad."""
    from quorate.testing import chaos_run

    return chaos_run


def made(ini: pytest.Config, wanted: Mapping[str, Any]) -> LocalCluster:
    """Return a cluster with the arguments `wanted`. Missing ones come from the ini file.

    The properties of both are merged, and those of `wanted` win."""
    from quorate.testing import LocalCluster

    pairs = (line.partition("=") for line in ini.getini("quorate_config"))
    properties = {name.strip(): value.strip() for name, _, value in pairs}
    shape: dict[str, Any] = {
        "controllers": int(ini.getini("quorate_controllers")),
        "brokers": int(ini.getini("quorate_brokers")),
        **wanted,
        "config": {**properties, **wanted.get("config", {})},
    }
    return LocalCluster(**shape)
