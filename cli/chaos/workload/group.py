"""The consumer group of a run: processes that read the topic, some of which are killed.

A killed member is replaced as soon as the others have its partitions. The next kill follows after a
pause."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.cli.chaos.workload.group_log import GroupLog
from quorate.cli.client.errors import Refused

POLL_S = 0.05
LEAVE_S = 10.0
"""Time, in s, within which a member must have left after its standard input has ended."""
START_S = 60.0
"""Time, in s, within which every partition must have a member."""
LINE_BYTES = 1 << 20
"""The longest line of a member."""


@dataclass(slots=True, kw_only=True)
class Group:
    """The members of one group, owned by the event loop on which `start` is called.

    Bound: `members` processes, and one more while a member is replaced."""

    bootstrap: str
    topic: str
    members: int
    session_ms: int
    kill_interval_s: float
    log: GroupLog
    say: Callable[[str], None]
    """Takes each kill of a member, and its end, as text."""
    command_config: str | None = None
    """The path of the file with the settings of the members' connections."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _processes: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _failed: Exception | None = None
    _stopping: bool = False
    _killing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the members, and return when every partition has one.

        Raise Refused, with the last error of a member, if that takes longer than START_S."""
        for _ in range(self.members):
            await self._start_member()
        try:
            async with asyncio.timeout(START_S):
                await self._all_assigned()
        except TimeoutError:
            why = "; ".join(self.log.errors[-1:]) or "no member has joined"
            raise Refused(f"the group does not read every partition: {why}") from None

    def begin_kills(self) -> None:
        """Kill and replace members from now on, if the workload says so."""
        if self.kill_interval_s:
            self._killing = asyncio.create_task(self._kill())

    async def end_kills(self) -> None:
        """Stop to kill members. Raise the unexpected error that ended the kills, if there is one.

        A second call is allowed."""
        task, self._killing = self._killing, None
        if task is None:
            return
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def catch_up(self, ends: Mapping[int, int], within_s: float) -> None:
        """Wait until members have read everything below the ends, for `within_s` at most."""
        deadline_s = time.monotonic() + within_s
        while self.log.missing(ends):
            if time.monotonic() > deadline_s:
                return
            await asyncio.sleep(POLL_S)

    async def stop(self) -> None:
        """Let all members leave, and kill those that do not end within LEAVE_S.

        Raise the unexpected error of a reader of their events, if there is one, or Refused if a
        member has ended by itself."""
        await self.end_kills()
        self._stopping = True
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes.values():
            try:
                async with asyncio.timeout(LEAVE_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        self._processes.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failed is not None:
            raise self._failed

    async def _start_member(self) -> None:
        number = next(self._numbers)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "quorate.cli.chaos.workload.group_member"),
            *(self.bootstrap, self.topic, f"{self.topic}-group", str(self.session_ms)),
            *([] if self.command_config is None else [self.command_config]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
        )
        self._processes[number] = process
        task = asyncio.create_task(self._follow(number, process))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, number: int, process: asyncio.subprocess.Process) -> None:
        """Take the events of a member until it has ended. `stop` raises an unexpected error.

        A member ends only if it is killed, or asked to leave."""
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                if line.endswith(b"\n"):  # a kill may cut the last line
                    self.log.take(number, json.loads(line))
            if number in self._processes and not self._stopping:
                raise Refused(f"member {number} of the group ended by itself")
        except Exception as error:
            self._failed = error

    async def _all_assigned(self) -> None:
        while not self.log.complete():  # noqa: ASYNC110 - its tasks are many
            await asyncio.sleep(POLL_S)

    async def _kill(self) -> None:
        """Kill the oldest member, wait until the others have its partitions, and replace it."""
        while True:
            await asyncio.sleep(self.kill_interval_s)
            number = min(self._processes)
            process = self._processes.pop(number)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            self.log.killed(number, time.monotonic())
            self.say(f"member {number} of the group is killed")
            await process.wait()
            await self._all_assigned()
            self.say("every partition has a member of the group again, and a new one starts")
            await self._start_member()
