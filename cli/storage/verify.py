"""`quorate storage verify`: checks the directory of a stopped node, and prints a line for each
finding.

A finding is a `CheckResult`: a fault or a note. The exit code is 0 if the directory is sound, which
means that every finding is a note. Otherwise it is 1. The directory must not be in use. Quorate's
nodes lock the file `.lock` with flock, and Apache Kafka's with fcntl. The command holds both locks
while it runs."""

from __future__ import annotations

import fcntl
import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quorate.broker.logs.producer_snapshots import decode as decode_producers
from quorate.cli.client.errors import Refused
from quorate.cli.nodes.server import load_config
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.ids import random_uuid, uuid_to_text
from quorate.quorum.log.checking.check_result import UNKNOWN, CheckResult, Kind
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.node.opening.data_directory import LOCK_FILE
from quorate.quorum.node.opening.meta_properties import META_FILE
from quorate.quorum.offline.storage_repair import repair, set_aside_metadata
from quorate.quorum.offline.storage_verify import METADATA, Verification, verify


def run(directory: str, *, repairing: bool, file: str | None, output: str) -> None:
    """Verify a directory, repair it if `repairing`, and print the findings.

    `directory` is a node's directory, or that of a single log. The repaired findings come first,
    then those that are left. `output` is "text" or "json". Text ends with a summary. JSON is one
    object per line for each finding, without a summary.

    The repairs are those of `storage_repair.repair`. `file` is the config file of the directory's
    node, or None. If that node is a broker without a vote, the repair also renames a damaged
    metadata log, because the broker can fetch it again.

    Raise Refused if the directory is in use, cannot be read, or does not belong to the node of
    `file`. Raise SystemExit with code 1 if it is not sound at the end."""
    path = str(Path(directory).resolve())
    broker = is_broker(path, file) if file is not None else False
    disk = OsDisk()
    try:
        with unused(disk, path), waiting_for(f"verifying {path}"):
            before = after = check(disk, path)
            aside = ""
            if repairing and not before.sound:
                repair(disk, before)
                if broker and is_metadata_damaged(before, path):
                    unique = uuid_to_text(random_uuid(random.SystemRandom()))
                    aside = set_aside_metadata(disk, path, unique.replace("-", "_"))
                after = check(disk, path)
    except (LogError, OSError) as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    left = set(after.results)
    for finding in before.results:
        if finding.kind is not Kind.NOTE and finding not in left:
            show(finding, output, repaired=True)
    for finding in after.results:
        show(finding, output)
    if output == "text":
        if aside:
            echo(f"{path}/{METADATA} was renamed to {aside}")
        echo(
            f"{path}: {len(after.logs)} logs, {after.batches} batches: "
            + ("sound" if after.sound else found(wrong(after)))
        )
    if not after.sound:
        raise SystemExit(1)


def check(disk: OsDisk, path: str) -> Verification:
    """Return the findings in a node's directory, or in that of a single log. Block, and change
    nothing. Raise OSError if it cannot be read, or LogError if a checkpoint file is too large."""
    return verify(disk, path, whole_producers=lambda content: decode_producers(content) is not None)


def found(count: int) -> str:
    """Return the text for a number of findings: "1 finding", "2 findings"."""
    return f"{count} finding{'' if count == 1 else 's'}"


def wrong(verification: Verification) -> int:
    """Return the number of findings that are not notes."""
    return sum(each.kind is not Kind.NOTE for each in verification.results)


def show(finding: CheckResult, output: str, *, repaired: bool = False) -> None:
    """Print one finding as a line in the format `output`, "text" or "json". `repaired` marks it as
    repaired."""
    if output == "text":
        echo(f"repaired: {finding}" if repaired else str(finding))
        return
    row = {
        "file": finding.path,
        "byte": None if finding.position == UNKNOWN else finding.position,
        "offset": None if finding.offset == UNKNOWN else finding.offset,
        "kind": finding.kind.value,
        "what": finding.what,
        "wayOut": finding.way_out,
        "repaired": repaired,
    }
    echo(json.dumps(row, separators=(",", ":"), ensure_ascii=False))


def is_broker(path: str, file: str) -> bool:
    """Return True if the node of the config file is a broker without a vote.

    Raise Refused if `path` is neither one of its log directories nor its metadata directory."""
    config = load_config(file)
    if path not in {str(Path(each).resolve()) for each in config.directories}:
        raise Refused(f"--config: {file} belongs to {','.join(config.log_dirs)}, not to {path}")
    return not config.is_controller


def is_metadata_damaged(verification: Verification, path: str) -> bool:
    """Return True if the metadata log or a snapshot below the directory `path` is damaged."""
    return any(
        each.kind is Kind.DAMAGED and each.path.startswith(f"{path}/{METADATA}")
        for each in verification.results
    )


@contextmanager
def unused(disk: OsDisk, path: str) -> Iterator[None]:
    """Hold both locks of a node's directory during the block. Raise Refused if its node runs.

    A `path` without meta.properties is taken for a single log: the locks are those of its parent
    directory. If the parent has no lock file, nothing is locked or checked."""
    root = path if Path(path, META_FILE).exists() else os.path.dirname(path)
    lock_path = f"{root}/{LOCK_FILE}"
    if root != path and not Path(lock_path).exists():
        yield
        return
    try:
        lock = disk.lock(lock_path)
    except BlockingIOError:
        raise Refused(f"{root} is in use by a running node: stop it first") from None
    try:
        with Path(lock_path).open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(f"{root} is in use by a running Kafka: stop it first") from None
            yield
    finally:
        with suppress(OSError):
            lock.release()
