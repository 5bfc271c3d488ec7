"""`quorate metadata-quorum force-voters`: rebuilds a quorum that lost its majority for good.

Every broker holds the committed metadata log. The directory of any node can therefore be a source.
The tool chooses the source with the greatest (generation, last epoch, end offset). Each controller
of the new quorum gets a copy of its log, an epoch above all epochs of the sources, and records that
make exactly these controllers the voters (kraft.version 1). The generation counts the rebuilds. It
rises by one, so that nodes of the old quorum and of the new one refuse each other. The rules by
which other nodes follow into the new generation are in `raft/generation.py`.

The tool cannot know whether a lost controller acknowledged records that no source has. Such changes
are lost: the topics created last are missing, and an ISR may name a replica that had left it. That
replica may then lead without all committed records. The operator must therefore give every
directory that remains.

The caller calls `locked`, then `complete_interrupted`, `plan` and `carry_out`. `carry_out` writes
only to the directories of the new controllers. `complete_interrupted` writes only where an earlier
rebuild was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey, Uuid, random_uuid
from quorate.quorum.metadata.difference import difference
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.node.opening.data_directory import LOCK_FILE, METADATA_DIRECTORY
from quorate.quorum.node.opening.directory_replacement import (
    finish_replacement,
    replace_metadata_directory,
    replacement_is_pending,
)
from quorate.quorum.node.opening.meta_properties import MetaProperties, StorageError, read_meta
from quorate.quorum.node.peers.node_membership import own_voter
from quorate.quorum.node.replica.node_settings import metadata_log_settings
from quorate.quorum.node_message_bounds import INT32_MAX
from quorate.quorum.offline.rebuilt_directory import NewQuorum, prepare
from quorate.quorum.offline.source_directories import SourceDirectory, agreed_offset, read_source
from quorate.quorum.offline.storage_format import format_directory
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.generation import Rebuild
from quorate.quorum.seams import Disk, Random

EPOCH_MARGIN = 1000
"""The distance of the new epoch from the highest one in the sources. It leaves room for the epochs
of nodes whose directories are not given, which may be higher. `epoch_repair.py` keeps the same
distance from the last epoch of a log."""


class ForceRefused(Exception):
    """The rebuild cannot be made as requested. The call that raises this error changes nothing."""

    for_operator = True
    """The message says what the operator has to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewController:
    """One controller of the new quorum."""

    config: NodeConfig
    voter: Voter
    is_formatted: bool
    """True if its `metadata_log_dir` is formatted already."""
    replaces: bool
    """True if it has a metadata directory, which `carry_out` renames to the backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogComparison:
    """The differences between another source's log and the chosen one."""

    source: SourceDirectory
    missing: range
    """The offsets of the chosen log whose records the other log lacks."""
    surplus: range
    """The offsets of the other log whose records the chosen log lacks. Both ranges begin where the
    logs diverge, so they may overlap."""
    never_committed: bool
    """True if both sources have the same rebuilds. A later leader was then elected without the
    surplus, so the surplus was never committed. If False, it may have been committed before a
    rebuild dropped it. The value does not matter if the surplus is empty."""
    changes: Mapping[str, Sequence[str]]
    """The result of `changes_between` from the other source to the chosen one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The rebuild that `carry_out` makes."""

    chosen: SourceDirectory
    others: tuple[LogComparison, ...]
    """All sources but the chosen one, in the order in which they were given."""
    quorum: NewQuorum
    controllers: tuple[NewController, ...]
    """The new controllers, in the order of their node ids."""

    @property
    def generation(self) -> int:
        """The generation of the rebuilt quorum."""
        return len(self.quorum.rebuilds)


@contextmanager
def locked(disk: Disk, directories: Sequence[str], configs: Sequence[NodeConfig]) -> Iterator[None]:
    """Hold the locks of the sources and of the new controllers inside the `with` block.

    Raise ForceRefused if a running node holds one of the locks. No node can start on a locked
    directory. The lock of a node is a file in its `log.dirs`. A directory without that file is not
    locked. Either no node ever ran on it, or it is a separate `metadata.log.dir`. The operator must
    have stopped the node of such a source.
    """
    paths = [*directories, *(config.log_dir for config in configs)]
    with ExitStack() as held:
        for path in dict.fromkeys(path.rstrip("/") for path in paths):
            if not disk.exists(f"{path}/{LOCK_FILE}"):
                continue
            try:
                held.callback(disk.lock(f"{path}/{LOCK_FILE}").release)
            except BlockingIOError:
                raise ForceRefused(
                    f"{path} is in use by a running node. Stop all nodes of the cluster first"
                ) from None
        yield


def plan(
    disk: Disk, directories: Sequence[str], configs: Sequence[NodeConfig], random: Random
) -> Plan:
    """Return the plan of the rebuild. Block, and change nothing.

    `directories`, at least one, are the sources. `configs` are those of the new controllers.
    `random` makes the id of the rebuild and the directory ids of unformatted directories. Raise the
    errors of `read_source`, such as DamagedSource. Raise ForceRefused in the following cases:

    - An earlier rebuild of one of the directories is not complete.
    - The directories belong to different clusters, or no source has records.
    - A config has no controller role, no port for its controller listener, or the node id of
      another config.
    - A new controller's directory is formatted, and belongs to another node or is not among the
      sources.
    - The new epoch would exceed INT32_MAX."""
    given = list(dict.fromkeys(each.rstrip("/") for each in directories))
    for parent in (*given, *(config.metadata_log_dir for config in configs)):
        if replacement_is_pending(disk, parent):
            raise ForceRefused(
                f"{parent}: an earlier rebuild was interrupted and is not complete. Run this "
                "command without --dry-run to complete it, or start the node"
            )
    sources = [read_source(disk, each) for each in given]
    chosen = max(sources, key=lambda each: each.rank)
    for each in sources:
        _require_same_cluster(each.directory, each.meta.cluster_id, chosen)
    if chosen.end.offset == 0:
        raise ForceRefused(
            f"cannot rebuild the quorum: none of {', '.join(given)} holds records of the "
            "metadata log. Give the directory of a node that does"
        )
    known = {each.meta.directory_id for each in sources}
    controllers = _controllers(disk, configs, known, chosen, random)
    rebuild = Rebuild(id=random_uuid(random), epoch=chosen.end.epoch, offset=chosen.end.offset)
    epoch = max(each.highest_epoch for each in sources) + EPOCH_MARGIN
    if epoch > INT32_MAX:
        raise ForceRefused(
            f"the rebuilt quorum would begin in epoch {epoch}, above the highest one, {INT32_MAX}. "
            "Run `quorate storage repair-epoch` on every directory whose quorum-state says so"
        )
    quorum = NewQuorum(
        source=f"{chosen.directory}/{METADATA_DIRECTORY}",
        end=chosen.end,
        epoch=epoch,
        rebuilds=(*chosen.rebuilds, rebuild),
        voters=tuple(each.voter for each in controllers),
    )
    return Plan(
        chosen=chosen,
        others=tuple(compare(chosen, each) for each in sources if each is not chosen),
        quorum=quorum,
        controllers=controllers,
    )


def compare(chosen: SourceDirectory, other: SourceDirectory) -> LogComparison:
    """Return the differences between `other` and the chosen source."""
    agreed = agreed_offset(chosen, other)
    return LogComparison(
        source=other,
        missing=range(agreed, chosen.end.offset),
        surplus=range(agreed, other.end.offset),
        never_committed=other.rebuilds == chosen.rebuilds,
        changes=changes_between(other, chosen),
    )


def changes_between(old: SourceDirectory, new: SourceDirectory) -> dict[str, list[str]]:
    """Return the names of the objects that changed from `old` to `new`, by kind of change.

    A kind is a phrase such as "topics created". Kinds without a change are absent."""
    delta = difference(old.image, new.image)
    changed = delta.partitions()
    found = {
        "topics created": [each.topic.name for each in delta.topics.values() if each.created],
        "topics deleted": [topic.name for topic in delta.deleted.values()],
        "partitions changed": [
            f"{topic.name}-{partition}"
            for topic, partition, _ in changed
            if not delta.topics[topic.id].created
        ],
        "brokers changed": [str(each) for each in delta.brokers],
        "controllers changed": [str(each) for each in delta.controllers],
        "configs changed": [
            f"{'topic' if kind == TOPIC_RESOURCE else 'broker'} {name or '(default)'}"
            for kind, name in delta.configs
        ],
        "features changed": list(delta.features),
    }
    return {kind: names for kind, names in found.items() if names}


def _controllers(
    disk: Disk,
    configs: Sequence[NodeConfig],
    known: set[Uuid],
    chosen: SourceDirectory,
    random: Random,
) -> tuple[NewController, ...]:
    found: dict[int, NewController] = {}
    for config in configs:
        if not config.is_controller:
            raise ForceRefused(f"node {config.node_id}: process.roles must contain controller")
        if config.node_id in found:
            raise ForceRefused(
                f"node.id {config.node_id} is given twice. Give each controller once"
            )
        parent = config.metadata_log_dir
        meta = read_meta(disk, parent)
        if meta is not None:
            _require_same_cluster(parent, meta.cluster_id, chosen)
            _require_own(config, meta, known)
        directory_id = random_uuid(random) if meta is None else meta.directory_id
        found[config.node_id] = NewController(
            config=config,
            voter=_voter(config, directory_id),
            is_formatted=meta is not None,
            replaces=disk.is_dir(f"{parent}/{METADATA_DIRECTORY}"),
        )
    return tuple(found[node_id] for node_id in sorted(found))


def _require_same_cluster(where: str, cluster_id: str, chosen: SourceDirectory) -> None:
    if cluster_id != chosen.meta.cluster_id:
        raise ForceRefused(
            f"{where} belongs to cluster {cluster_id}, but {chosen.directory} belongs to cluster "
            f"{chosen.meta.cluster_id}. Give directories of one cluster"
        )


def _require_own(config: NodeConfig, meta: MetaProperties, known: set[Uuid]) -> None:
    parent = config.metadata_log_dir
    if meta.node_id != config.node_id:
        raise ForceRefused(
            f"{parent} belongs to node.id {meta.node_id}, not to {config.node_id}. Correct "
            "log.dirs or node.id"
        )
    if meta.directory_id not in known:
        raise ForceRefused(
            f"{parent} is formatted, and its log may be the longest one. Give the directory with "
            "--dir too"
        )


def _voter(config: NodeConfig, directory_id: Uuid) -> Voter:
    voter = own_voter(config, ReplicaKey(config.node_id, directory_id))
    if voter is None:
        listener = config.listeners.controller[0]
        raise ForceRefused(
            f"node {config.node_id}: listener {listener.name} has no port in {listener}. Set "
            "advertised.listeners"
        )
    return voter


def complete_interrupted(
    disk: Disk, directories: Sequence[str], configs: Sequence[NodeConfig]
) -> None:
    """Complete the rebuilds of these directories that an earlier run began to carry out. Block.

    Call it before `plan`, which refuses such a directory. The rebuilds are durable on return. A
    directory that is missing or has no interrupted rebuild is skipped. Raise StorageError if the
    file that records such a rebuild is damaged, and OSError if the disk fails."""
    for parent in (*directories, *(config.metadata_log_dir for config in configs)):
        if disk.is_dir(parent):
            finish_replacement(disk, parent.rstrip("/"))


def carry_out(disk: Disk, planned: Plan, *, wall_ms: int, backup: str) -> None:
    """Rebuild the quorum. Block; durable on return.

    Directories that are replaced are renamed to `backup`, a name that begins with
    `__cluster_metadata-0.` and is new in each of them. All copies are durable before the first of
    them replaces a directory. Unformatted directories are formatted.

    After a crash in between, some controllers may have the new directory and others the old one.
    Run the command again then. Directories that the first run formatted must be given as sources,
    because `plan` refuses them otherwise.

    Raise StorageError if the backup's name is taken, and LogError if a copy fails. No directory was
    replaced then. Any step may raise OSError."""
    for each in planned.controllers:
        config = each.config
        if disk.exists(f"{config.metadata_log_dir}/{backup}"):
            raise StorageError(
                f"{config.metadata_log_dir}/{backup} exists already. Run the command again"
            )
        settings = metadata_log_settings(config)
        prepare(disk, config.metadata_log_dir, planned.quorum, settings, wall_ms=wall_ms)
    for each in planned.controllers:
        replace_metadata_directory(disk, each.config.metadata_log_dir, backup)
        if not each.is_formatted:
            format_directory(
                disk,
                each.config,
                cluster_id=planned.chosen.meta.cluster_id,
                directory_id=each.voter.voter_directory_id,
                wall_ms=wall_ms,
            )
