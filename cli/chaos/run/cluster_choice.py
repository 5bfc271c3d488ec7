"""The cluster of `quorate chaos run`: a temporary one, that of a directory, or the nodes of a
file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.existing_runs import file_of_clients, run_on_existing_cluster
from quorate.cli.chaos.run.listed_runs import run_on_listed_cluster
from quorate.cli.chaos.run.temporary_runs import NewCluster, run_on_temporary_cluster
from quorate.cli.chaos.scenario.scenario import Scenario, Variant
from quorate.cli.client.client_file import ClientFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """The options of `quorate chaos run` about the cluster."""

    directory: Path | None
    bootstrap: str | None
    node_file: Path | None
    command_config: str | None
    keep_config: bool
    overrides: tuple[str, ...]
    secure: bool
    keep: bool

    def refuse_contradictions(self) -> None:
        """Raise UsageError if options do not fit together."""
        if (self.bootstrap is None) != (self.node_file is None):
            raise click.UsageError("--bootstrap-server and --nodes need each other")
        if self.directory is not None and self.bootstrap is not None:
            raise click.UsageError("--dir cannot be given with --bootstrap-server")
        if self.directory is not None or self.bootstrap is not None:
            if self.overrides or self.secure or self.keep:
                raise click.UsageError(
                    "--override, --secure and --keep cannot be given with --dir or "
                    "--bootstrap-server: the nodes of that cluster run already"
                )
        elif self.keep_config or self.command_config is not None:
            option = "--keep-config" if self.keep_config else "--command-config"
            raise click.UsageError(
                f"{option} needs --dir or --bootstrap-server: a temporary cluster has no "
                "configuration of its own, and `--secure` gives its clients their settings"
            )

    def run(
        self, scenario: Scenario, variants: tuple[Variant, ...], seed: int, view: View
    ) -> Result:
        """Run the scenario. Raise Refused or NotReachable if the cluster cannot run it, before
        anything is changed."""
        if self.bootstrap is not None and self.node_file is not None:
            nodes = self.bootstrap, self.node_file, self.keep_config, view
            client_file = ClientFile.read(self.command_config)
            return run_on_listed_cluster(scenario, variants, seed, *nodes, client_file)
        if self.directory is not None:
            client_file = file_of_clients(self.directory, self.command_config)
            return run_on_existing_cluster(
                scenario, variants, seed, self.directory, self.keep_config, view, client_file
            )
        new = NewCluster(self.overrides, self.secure, self.keep)
        return run_on_temporary_cluster(scenario, variants, seed, new, view)
