"""The commands of scripts about the metadata quorum, on real Raft cores.

The harness of tests/unit/raft carries out the effects. A command shows what it causes, in order:
a message when it arrives or is lost, an election or a flush when it is durable. A fetch that
repeats the one before it, and an answer without news, are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quorate.quorum.raft import messages
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.raft.settings import RaftSettings
from tests.scripts.language import Step
from tests.scripts.quorum_trace import records_text, request_text, snapshot_name
from tests.scripts.traced_cluster import TracedCluster
from tests.unit.raft.harness import Letter, RaftNode

KINDS: dict[str, type[messages.Request]] = {
    "vote": messages.VoteRequest,
    "begin-epoch": messages.BeginQuorumEpochRequest,
    "end-epoch": messages.EndQuorumEpochRequest,
    "fetch": messages.FetchRequest,
    "fetch-snapshot": messages.FetchSnapshotRequest,
}
"""The requests that `deliver` and `drop` can name. With "-answer", the name means a response."""
ANSWER = "-answer"
ON_THE_WAY = re.compile(r"is (unattached|prospective|candidate) in epoch")
"""The roles that a node passes through in an election."""


class Quorum:
    """One script's quorum. The command `nodes` has made it."""

    def __init__(self, step: Step) -> None:
        (voters,) = step.numbers()
        fetch_bytes = step.option("fetch-bytes", RaftSettings().fetch_max_bytes)
        dynamic = step.options.get("dynamic") == "yes"
        self._cluster = cluster = TracedCluster(voters, dynamic=dynamic, fetch_bytes=fetch_bytes)
        self._started = list(cluster.voter_ids)
        for node_id in self._started:
            cluster.start(node_id)
        cluster.settle()
        cluster.trace.clear()
        names = ", ".join(map(str, self._started))
        self.trace.append(f"nodes {names} are voters, and none of them knows a leader")

    @property
    def trace(self) -> list[str]:
        """The lines of the present step."""
        return self._cluster.trace

    def run(self, step: Step) -> list[str]:
        """Carry out one command and return its trace. `trace=short` leaves out messages and disk
        writes."""
        command = COMMANDS.get(step.command)
        if command is None:
            raise step.error(f"one of {', '.join(sorted(COMMANDS))} is known")
        self.trace.clear()
        self._cluster.short = step.options.get("trace") == "short"
        command(self, step)
        return list(self.trace)

    # Elections

    def timeout(self, step: Step) -> None:
        """`timeout NODE...`: time passes until the election or fetch timeouts of these nodes end.

        The timeout of a node that has not voted is short, because its links are up. If several
        nodes are named, no message arrives before all their timeouts have ended.
        """
        cluster = self._cluster
        before = {each: cluster.role(each) for each in step.numbers()}
        for node_id, role in before.items():
            if role is Role.UNATTACHED and not self._isolated(node_id):
                self._connect(node_id)

        def ended() -> bool:
            return all(cluster.role(each) is not role for each, role in before.items())

        if len(before) == 1:
            cluster.until(ended)
        while not ended():
            cluster.pass_time(cluster.now_ms + 1)

    def _connect(self, node_id: int) -> None:
        cluster = self._cluster
        for other in cluster.voter_ids:
            if other != node_id and cluster.nodes[other].raft is not None:
                cluster.core(node_id).voter_connected(cluster.now_ms, cluster.nodes[other].me)
        cluster.collect(cluster.nodes[node_id])

    def _isolated(self, node_id: int) -> bool:
        return any(node_id in link for link in self._cluster.cut)

    def elect(self, step: Step) -> None:
        """`elect NODE`: the node's timeout ends, all messages are delivered, and it leads. With
        `trace=short` only the roles at the end are shown."""
        self.timeout(step)
        self._cluster.settle()
        (node_id,) = step.numbers()
        if self._cluster.short:
            self.trace[:] = [line for line in self.trace if not ON_THE_WAY.search(line)]
        if self._cluster.role(node_id) is not Role.LEADER:
            raise step.error(f"node {node_id} is {self._cluster.role(node_id)}")

    def resign(self, step: Step) -> None:
        """`resign NODE`: an orderly stop of the leader."""
        (node_id,) = step.numbers()
        node = self._cluster.nodes[node_id]
        node.core.resign(self._cluster.now_ms)
        self._cluster.collect(node)

    # The log

    def append(self, step: Step) -> None:
        """`append NODE VALUE...`: the leader appends one batch of records."""
        node_id, values = step.number(step.arguments[0]), step.arguments[1:]
        try:
            end = self._cluster.append(node_id, *(each.encode() for each in values))
        except NotLeader:
            self.trace.append(f"node {node_id} refuses, because it does not lead")
            return
        core = self._cluster.core(node_id)
        first = end - len(values) + 1
        span = f"offset {end}" if first == end else f"offsets {first} to {end}"
        self.trace.insert(
            0, f"node {node_id} appends {', '.join(values)} at {span} in epoch {core.epoch}"
        )

    def snapshot(self, step: Step) -> None:
        """`snapshot NODE`: the node writes a snapshot and deletes its log below it."""
        (node_id,) = step.numbers()
        taken = self._cluster.take_snapshot(node_id)
        if taken is not None:
            self.trace.append(
                f"node {node_id} writes {snapshot_name(taken)} and deletes its log below"
            )

    def logs(self, step: Step) -> None:
        """`logs [NODE...]`: show each record as value and epoch, by offset."""
        ids = step.numbers() or self._started
        nodes = [self._cluster.nodes[each] for each in ids]
        ends = [node.log.end_offset for node in nodes]
        rows = [_row(node, max(ends)) for node in nodes]
        head = ["epoch:value", *(f"offset {each}" for each in range(max(ends))), "high watermark"]
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        for row in [head, *rows]:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.trace.append("  ".join(cells).rstrip())

    # Voters

    def start(self, step: Step) -> None:
        """`start NODE`: start a node, such as the spare controller 11."""
        (node_id,) = step.numbers()
        self.trace.append(f"node {node_id} starts")
        self._started.append(node_id)
        self._cluster.start(node_id)

    def add_voter(self, step: Step) -> None:
        """`add-voter LEADER NODE`: ask the leader to add a voter."""
        leader, node_id = step.numbers()
        self._cluster.add_voter(leader, node_id)

    def remove_voter(self, step: Step) -> None:
        """`remove-voter LEADER NODE`: ask the leader to remove a voter."""
        leader, node_id = step.numbers()
        self._cluster.remove_voter(leader, node_id)

    # Messages, disks and time

    def deliver(self, step: Step) -> None:
        """`deliver`: deliver all messages, and end all disk writes.

        `deliver KIND [from=] [to=] [save=no]`: deliver one message, and save the election that
        follows from it.
        """
        if step.arguments:
            letter = self._pick(step)
            self._cluster.deliver(letter)
            if step.options.get("save") != "no":
                self._cluster.save_all(letter.target)
        else:
            self._cluster.settle()

    def drop(self, step: Step) -> None:
        """`drop KIND [from=] [to=]`: the network loses one message."""
        letter = self._pick(step)
        self._cluster.drop(letter)
        self.trace.append(f"{request_text(letter)}; the message is lost")

    def _pick(self, step: Step) -> Letter:
        (name,) = step.arguments
        kind = KINDS.get(name.removesuffix(ANSWER))
        if kind is None:
            raise step.error(f"{name} is no message: one of {', '.join(KINDS)}")
        source, target = (step.option(each, -1) for each in ("from", "to"))
        for letter in self._cluster.letters:
            ends = (letter.source, letter.target)
            wanted = all(
                want in (-1, has) for want, has in zip((source, target), ends, strict=True)
            )
            wanted = wanted and letter.is_response == name.endswith(ANSWER)
            if wanted and isinstance(self._cluster.request_of(letter), kind):
                return letter
        raise step.error("no such message is in flight")

    def messages(self, step: Step) -> None:
        """`messages`: show the messages that are in flight."""
        for letter in self._cluster.letters:
            self.trace.append(f"in flight: {self._cluster.text_of(letter)}")

    def isolate(self, step: Step) -> None:
        """`isolate NODE...`: cut the links between these nodes and all others."""
        self._cluster.isolate(*step.numbers())
        self.trace.append(f"the links of node {' and '.join(step.arguments)} to the others are cut")

    def cut(self, step: Step) -> None:
        """`cut NODE NODE`: cut the link between two nodes."""
        one, other = step.numbers()
        self._cluster.cut |= {(one, other), (other, one)}
        self.trace.append(f"the link of nodes {one} and {other} is cut")

    def heal(self, step: Step) -> None:
        """`heal`: restore all links."""
        self._cluster.heal()
        self.trace.append("all links work")

    def flush(self, step: Step) -> None:
        """`flush NODE`: the oldest flush of the node ends."""
        (node_id,) = step.numbers()
        self._cluster.flush(node_id)

    def crash(self, step: Step) -> None:
        """`crash NODE`: power loss. Everything that was not durable is lost."""
        (node_id,) = step.numbers()
        self._cluster.crash(node_id)
        self.trace.append(f"node {node_id} is down")

    def kill(self, step: Step) -> None:
        """`kill NODE`: the process dies. The others see closed links and refused connections."""
        (node_id,) = step.numbers()
        self.trace.append(f"node {node_id} is down, and its port refuses connections")
        self._cluster.kill(node_id)

    def lose_log(self, step: Step) -> None:
        """`lose-log NODE`: a node that is down loses its metadata directory. Its mark stays."""
        (node_id,) = step.numbers()
        self._cluster.lose_log(node_id)
        self.trace.append(f"node {node_id} has lost its log")

    def restart(self, step: Step) -> None:
        """`restart NODE`: start it again from its disk."""
        (node_id,) = step.numbers()
        node = self._cluster.nodes[node_id]
        self.trace.append(f"node {node_id} restarts with a log that ends at {node.log.end_offset}")
        self._cluster.start(node_id)

    def wait(self, step: Step) -> None:
        """`wait MS`: time passes, and all messages arrive."""
        (duration_ms,) = step.numbers()
        self._cluster.run(duration_ms)

    def state(self, step: Step) -> None:
        """`state [NODE...]`: show role, epoch and high watermark."""
        for node_id in step.numbers() or self._started:
            raft = self._cluster.nodes[node_id].raft
            if raft is None:
                self.trace.append(f"node {node_id} is down")
            else:
                self.trace.append(
                    f"node {node_id} is {raft.role.value} in epoch {raft.epoch}, "
                    f"high watermark {raft.high_watermark}"
                )


def _row(node: RaftNode, end: int) -> list[str]:
    cells = [""] * end
    for offset in range(node.log.start_offset):
        cells[offset] = "(snapshot)"
    for batch in node.log.batches:
        for index, text in enumerate(records_text(batch)):
            cells[batch.base_offset + index] = f"{batch.epoch}:{text}"
    return [f"node {node.me.id}", *cells, str(node.high_watermark)]


COMMANDS: dict[str, Callable[[Quorum, Step], None]] = {
    "timeout": Quorum.timeout,
    "elect": Quorum.elect,
    "resign": Quorum.resign,
    "append": Quorum.append,
    "snapshot": Quorum.snapshot,
    "logs": Quorum.logs,
    "start": Quorum.start,
    "add-voter": Quorum.add_voter,
    "remove-voter": Quorum.remove_voter,
    "deliver": Quorum.deliver,
    "drop": Quorum.drop,
    "messages": Quorum.messages,
    "isolate": Quorum.isolate,
    "cut": Quorum.cut,
    "heal": Quorum.heal,
    "flush": Quorum.flush,
    "crash": Quorum.crash,
    "kill": Quorum.kill,
    "lose-log": Quorum.lose_log,
    "restart": Quorum.restart,
    "wait": Quorum.wait,
    "state": Quorum.state,
}
