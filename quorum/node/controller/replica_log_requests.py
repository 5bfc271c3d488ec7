"""The active controller's questions to brokers about the ends of their logs (KIP-966, part 2).

The rules say which questions to ask, and before which requests of administrators
(`replica_log_queries.py`). The questions go over the links that the brokers have opened to this
controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.messages import ReplicaLogsRequest, ReplicaLogsResponse
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.result import AskReplicaLogs
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.seams import Clock

CHECK_MS = 20
"""The interval at which a request that waits for answers of brokers is looked at, in ms."""

ChannelOf = Callable[[int, int], Channel | None]
"""A function from (broker id, broker epoch) to the link of this registration, or None."""


class ReplicaLogRequests:
    """The questions of one controller. The node's event loop owns it, and no method blocks."""

    def __init__(
        self, clock: Clock, rules: Controller, shell: ControllerShell, channel_of: ChannelOf
    ) -> None:
        """`channel_of` finds the link to a broker."""
        self._clock = clock
        self._rules = rules
        self._shell = shell
        self._channel_of = channel_of

    def ask(self, asked: AskReplicaLogs) -> None:
        """Send one question, and give the rules the answer later. A broker without a link, an error
        and a timeout give them None."""

        def answered(answer: Any) -> None:
            response = answer if isinstance(answer, ReplicaLogsResponse) else None
            self._shell.handle_event(
                lambda now_ms, _: self._rules.replica_logs(asked, response, now_ms=now_ms)
            )

        channel = self._channel_of(asked.broker_id, asked.broker_epoch)
        if channel is None:
            self._clock.call_soon(lambda: answered(None))
            return
        request = ReplicaLogsRequest(partitions=asked.partitions)
        channel.request(request, asked.timeout_ms, answered)

    def ask_before(self, request: object, then: Callable[[], None]) -> None:
        """Ask the questions that the rules have about a request, and call `then` when there are
        answers or the time for them is over. Call it immediately if there are no questions."""
        keys = self._rules.unclean_keys(request) if self._shell.active else []
        if keys:
            result = self._rules.questions(request, now_ms=self._clock.now_ms())
            for effect in result.effects:
                assert isinstance(effect, AskReplicaLogs)
                self.ask(effect)
            if result.effects:
                self._shell.wake()
        self._when_answered(keys, then)

    def _when_answered(self, keys: Sequence[PartitionKey], then: Callable[[], None]) -> None:
        if self._shell.active and self._rules.has_questions(keys):
            self._clock.call_later(CHECK_MS, lambda: self._when_answered(keys, then))
        else:
            then()
