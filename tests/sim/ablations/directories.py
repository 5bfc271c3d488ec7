"""Safeguards of log directories: a failed directory costs only its own partitions, and no
acknowledged record (KIP-858)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.broker.logs import log_manager
from quorate.broker.logs.directory_choice import Candidate
from quorate.broker.logs.found_logs import FoundLogs
from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.logs.log_manager import LogManager
from quorate.broker.replication.directories import move_copy, offline_directories
from quorate.quorum.controller.brokers import log_directories
from quorate.quorum.controller.partitions import partition_change
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.names import PartitionName
from tests.sim.ablations import directory_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script
from tests.unit.controller import test_log_directories as controller_tests


def fewest_logs(candidates: Sequence[Candidate], *arguments: Any, **options: Any) -> str:
    return min(candidates, key=lambda each: each.logs).path


def first_found(
    self: FoundLogs, name: PartitionName, topic_id: Uuid, *arguments: Any, **options: Any
) -> LogDirectory | None:
    return next((each for each in self._found.get(name, ()) if name in each.unopened), None)


def any_epoch(self: LogManager) -> int:
    return max(each.previous_broker_epoch for each in self.directories)


ABLATIONS = (
    Ablation(
        "directory-failure",
        "a failed log directory costs only its own partitions (KIP-112)",
        log_manager,
        "failed_directory",
        lambda *arguments: None,
        Script(scripts.one_directory_fails),
        "the broker has stopped",
    ),
    Ablation(
        "directory-report",
        "a broker reports a failed log directory, so that other replicas lead (KIP-858)",
        offline_directories.OfflineDirectories,
        "_report",
        lambda self, path: None,
        Script(scripts.one_directory_fails_and_the_controller_moves_its_partitions),
        "moved away",
    ),
    Ablation(
        "offline-replica",
        "a replica in a failed log directory does not lead, although its broker is unfenced",
        partition_change,
        "has_online_directory",
        lambda image, broker_id, directory: True,
        Script(controller_tests.test_a_replica_in_a_failed_directory_does_not_lead),
        "broker 1 leads without a log",
    ),
    Ablation(
        "late-assignment",
        "a replica leaves the ISR if its broker reports it in a directory that has failed already",
        log_directories,
        "is_failed",
        lambda broker, directory: False,
        Script(controller_tests.test_an_unassigned_replica_is_found_by_its_late_assignment),
        'leader_and_isr("t", 1) == (2, (2,))',
    ),
    Ablation(
        "second-log",
        "a broker makes no second log while the first one may be in a failed directory "
        "(KAFKA-16234)",
        log_manager,
        "chosen_directory",
        fewest_logs,
        Script(scripts.a_broker_starts_without_one_directory),
        "a second, empty log",
    ),
    Ablation(
        "move-whole",
        "a future log replaces the current one only when it has all of its records (KIP-113)",
        move_copy,
        "has_all_records",
        lambda current, future: True,
        Script(scripts.a_log_moves_to_another_directory),
        "records are left behind",
    ),
    Ablation(
        "move-report",
        "the metadata names the target of a move before the future log replaces the current "
        "one (KIP-858)",
        move_copy,
        "may_swap",
        lambda accepted, recorded, target: True,
        Script(scripts.a_broker_is_killed_before_the_controller_knows_the_target),
        "acknowledged records are lost",
    ),
    Ablation(
        "later-log",
        "of two logs of a partition, a start opens the one that the metadata names",
        FoundLogs,
        "home",
        first_found,
        Script(scripts.a_broker_is_killed_after_the_swap_of_two_logs),
        "acknowledged records are lost",
    ),
    Ablation(
        "directory-epochs",
        "a stop counts as clean only if every log directory records it with the same broker epoch",
        LogManager,
        "previous_broker_epoch",
        property(any_epoch),
        Script(scripts.one_disk_is_replaced_after_a_clean_stop),
        "a new disk counts as a clean stop",
    ),
)
