"""`quorate features version-mapping | feature-dependencies`: tables of this release.

As in Kafka, these operations do not ask the cluster. They name only the features that Quorate has.
"""

from __future__ import annotations

from typing import Any

import click

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options
from quorate.cli.features.command import LEVELS, METADATA_VERSION, features, level_text
from quorate.cli.features.updates import (
    LOWEST_RELEASE,
    WITH_RELEASES,
    known_level,
    parsed,
)
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.controller.features.update_features import NEEDED_METADATA_VERSION
from quorate.quorum.controller.state.settings import SUPPORTED_FEATURES
from quorate.quorum.raft.voter_changes import KRAFT_VERSION, KRAFT_VERSIONS

RANGES = {**SUPPORTED_FEATURES, KRAFT_VERSION: KRAFT_VERSIONS}
"""The features of this release, with their lowest and highest levels."""


@features.command("version-mapping")
@cluster_options(controllers=True)
@click.option(
    "--release-version", metavar="VERSION", help="The metadata version. Default: 4.1-IV1."
)
def version_mapping(release_version: str | None, **_: Any) -> None:
    """Print the level of each feature in a release."""
    known = LEVELS[LOWEST_RELEASE - 1 :]
    version = known[-1] if release_version is None else release_version
    level = known_level(version)
    if level is None:
        raise Refused(
            f"Unknown release version '{version}'. Supported versions are: "
            f"{known[0]} to {known[-1]}"
        )
    echo(f"{METADATA_VERSION}={level} ({version})")
    for name, since, others_level in WITH_RELEASES:
        if name in RANGES:
            echo(f"{name}={others_level if level > LEVELS.index(since) else 0}")


@features.command("feature-dependencies")
@cluster_options(controllers=True)
@click.option(
    "--feature",
    "named",
    multiple=True,
    required=True,
    metavar="FEATURE=LEVEL",
    help="A feature with a level. May be repeated.",
)
def feature_dependencies(named: tuple[str, ...], **_: Any) -> None:
    """Print the features that each level needs."""
    for text in named:
        name, level = parsed(text)
        if name not in RANGES:
            raise Refused(f"Unknown feature: {name}")
        low, high = RANGES[name]
        if not low <= level <= high:
            raise Refused(f"No feature:{name} with feature level {level}")
        needed = NEEDED_METADATA_VERSION.get((name, level))
        if needed is None:
            shown = f"{level} ({level_text(name, level)})" if name == METADATA_VERSION else level
            echo(f"{name}={shown} has no dependencies.")
        else:
            echo(f"{name}={level} requires:")
            echo(f"    {METADATA_VERSION}={needed} ({level_text(METADATA_VERSION, needed)})")
