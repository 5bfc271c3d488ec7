"""`quorate features upgrade | downgrade | disable`, with the output of kafka-features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected
from quorate.cli.client.quorum import require_controller
from quorate.cli.features.command import LEVELS, METADATA_VERSION, feature_levels, features, given
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.controller.features.update_features import UpgradeType
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorate.quorum.raft.voter_changes import KRAFT_VERSION

F = TypeVar("F", bound=Callable[..., Any])
LOWEST_RELEASE = 7
"""The lowest level of metadata.version that an option may name (3.3-IV3)."""
# The levels of other features that a release sets: feature, the release that introduced the level,
# level.
WITH_RELEASES = (
    ("kraft.version", "3.9-IV0", 1),
    ("group.version", "4.0-IV0", 1),
    ("transaction.version", "4.0-IV2", 2),
    ("eligible.leader.replicas.version", "4.1-IV0", 1),
)
Updates = dict[str, int]


def change_options(command: F) -> F:
    """Add --feature and --dry-run to a command."""
    command = click.option(
        "--dry-run", is_flag=True, help="Validate the change without making it."
    )(command)
    return click.option(
        "--feature",
        "named",
        multiple=True,
        metavar="FEATURE[=LEVEL]",
        help="A feature, with its new level except for `disable`. May be repeated.",
    )(command)


def level_options(command: F) -> F:
    """Add --release-version and --metadata to a command."""
    command = click.option(
        "--metadata", metavar="LEVEL", help="Deprecated: use --release-version."
    )(command)
    return click.option(
        "--release-version", metavar="VERSION", help="The metadata version, such as 4.1-IV1."
    )(command)


unsafe_option = click.option(
    "--unsafe", is_flag=True, help="Lower the level even if metadata may be lost."
)


@features.command()
@cluster_options(controllers=True)
@change_options
@level_options
def upgrade(
    named: tuple[str, ...],
    dry_run: bool,
    release_version: str | None,
    metadata: str | None,
    **cluster: Any,
) -> None:
    """Raise the levels of features."""
    with connected(**given(cluster)) as admin:
        updates = levels(admin, named, release_version, metadata)
        parts = [updates]
        zero = sorted(name for name, level in updates.items() if level < 1)
        if release_version is None and zero:
            raise Refused(f"Level 0 of {', '.join(zero)} is no upgrade. Use downgrade or disable.")
        if release_version is not None:
            updates = {name: level for name, level in updates.items() if level}
            # Raft decides kraft.version, which therefore needs a request of its own.
            raft = {name: level for name, level in updates.items() if name == KRAFT_VERSION}
            parts = [{name: updates[name] for name in updates.keys() - raft}, raft]
        update(admin, "upgrade", parts, UpgradeType.UPGRADE, dry_run=dry_run)


@features.command()
@cluster_options(controllers=True)
@change_options
@level_options
@unsafe_option
def downgrade(
    named: tuple[str, ...],
    dry_run: bool,
    release_version: str | None,
    metadata: str | None,
    unsafe: bool,
    **cluster: Any,
) -> None:
    """Lower the levels of features."""
    with connected(**given(cluster)) as admin:
        updates = levels(admin, named, release_version, metadata)
        update(admin, "downgrade", [updates], downgrade_type(unsafe), dry_run=dry_run)


@features.command()
@cluster_options(controllers=True)
@change_options
@unsafe_option
def disable(named: tuple[str, ...], dry_run: bool, unsafe: bool, **cluster: Any) -> None:
    """Lower features to level 0."""
    with connected(**given(cluster)) as admin:
        updates = once([(name, 0) for name in named])
        update(admin, "disable", [updates], downgrade_type(unsafe), dry_run=dry_run)


def downgrade_type(unsafe: bool) -> UpgradeType:
    """Return the type of a downgrade; an unsafe one may lose metadata (KIP-778)."""
    return UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE


def levels(
    admin: Admin, named: tuple[str, ...], release_version: str | None, metadata: str | None
) -> Updates:
    """Return the wanted level of each feature. Raise UsageError or Refused for invalid options.

    A release version sets metadata.version and the features in WITH_RELEASES that the cluster
    supports."""
    if release_version is None:
        wanted = [] if metadata is None else [(METADATA_VERSION, release_level(metadata))]
        return once(wanted + [parsed(each) for each in named])
    if metadata is not None or named:
        raise click.UsageError("Can not specify `release-version` with other feature flags.")
    level = release_level(release_version)
    _, supported, _ = feature_levels(admin)
    others = {
        name: others_level if level > LEVELS.index(since) else 0
        for name, since, others_level in WITH_RELEASES
        if name in supported
    }
    return {METADATA_VERSION: level, **others}


def release_level(version: str) -> int:
    """Return the level of a metadata.version (`known_level`). Raise Refused if it is unknown."""
    level = known_level(version)
    if level is None:
        raise Refused(
            f"Unknown metadata.version {version}. Supported metadata.version are "
            + ", ".join(LEVELS[LOWEST_RELEASE - 1 :])
        )
    return level


def known_level(version: str) -> int | None:
    """Return the level of a metadata.version, or None if it is unknown. A release, such as "4.1" or
    "4.1.1", means its last one."""
    known = LEVELS[LOWEST_RELEASE - 1 :]
    release = ".".join(version.split(".")[:2])
    found = [each for each in known if each == release or each.startswith(f"{release}-IV")]
    return LEVELS.index(found[-1]) + 1 if found else None


def parsed(text: str) -> tuple[str, int]:
    """Return the feature and the level of FEATURE=LEVEL. Raise UsageError if it is malformed."""
    name, equals, level = text.partition("=")
    if not equals:
        raise click.UsageError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), int(level)
    except ValueError:
        raise click.UsageError(
            f"Can't parse feature=level string {text}: unable to parse {level} as a short."
        ) from None


def once(wanted: list[tuple[str, int]]) -> Updates:
    """Return the levels by feature. Raise UsageError if a feature occurs more than once."""
    updates = dict(wanted)
    for name in updates:
        if [each for each, _ in wanted].count(name) > 1:
            raise click.UsageError(f"Feature {name} was specified more than once.")
    return updates


def update(
    admin: Admin, operation: str, parts: list[Updates], kind: UpgradeType, *, dry_run: bool
) -> None:
    """Send each part in one request, whose updates succeed or fail together, and print each result.
    After a part that fails, no further one is sent, and its updates have failed, too.

    Raise UsageError if there are no updates, Refused if one fails."""
    updates = {name: level for part in parts for name, level in part.items()}
    if not updates:
        raise click.UsageError(f"You must specify at least one feature to {operation}")
    require_controller(admin, "no feature was changed")
    answers: dict[str, UpdateFeaturesResponse] = {}
    answer: UpdateFeaturesResponse | None = None
    for part in filter(None, parts):
        if answer is None or not answer.error_code:
            answer = send(admin, part, kind, dry_run=dry_run)
        answers |= dict.fromkeys(part, answer)
    for name, level in sorted(updates.items()):
        echo(line(operation, name, level, answers[name], dry_run=dry_run))
    failed = sum(bool(each.error_code) for each in answers.values())
    if failed:
        raise Refused(f"{failed} out of {len(updates)} operation(s) failed.")


def send(
    admin: Admin, updates: Updates, kind: UpgradeType, *, dry_run: bool
) -> UpdateFeaturesResponse:
    """Send updates in one request, and return the response."""
    request = UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level in updates.items()
        ),
        validate_only=dry_run,
    )
    return admin.change(request, UpdateFeaturesResponse, lambda answer: [answer.error_code])


def line(
    operation: str, name: str, level: int, answer: UpdateFeaturesResponse, *, dry_run: bool
) -> str:
    """Return the line of one feature's result."""
    disabling = operation == "disable"
    if not answer.error_code:
        what = "disabled." if disabling else f"{operation}d to {level}."
        return f"{name} {'can be' if dry_run else 'was'} {what}"
    what = f"disable {name}" if disabling else f"{operation} {name} to {level}"
    why = answer.error_message or ErrorCode.of(answer.error_code).message
    return f"{'Can' if dry_run else 'Could'} not {what}. {why}"
