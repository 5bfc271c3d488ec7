"""A cluster of Raft cores, by the harness of tests/unit/raft, that writes the trace of a script."""

from __future__ import annotations

from quorate.quorum.raft import effects, messages
from quorate.quorum.raft.effects import Effect
from quorate.quorum.raft.settings import RaftSettings
from tests.scripts.quorum_trace import effect_text, request_text, response_text, saved_text
from tests.unit.raft.harness import Letter, RaftCluster, RaftNode


class TracedCluster(RaftCluster):
    """A cluster of Raft cores that shows its events.

    `trace` gets one line for each visible event. While `short` is set, it gets no messages, saves
    and flushes.
    """

    def __init__(self, voters: int, *, dynamic: bool, fetch_bytes: int) -> None:
        self.trace: list[str] = []
        self.short = False
        self._requests: dict[tuple[int, int], messages.Request] = {}
        """Every request, by its sender and its token."""
        self._fetches: dict[int, str] = {}
        """The last fetch that was shown of each node."""
        super().__init__(
            voters,
            settings=RaftSettings(may_become_voter=True, fetch_max_bytes=fetch_bytes),
            directories_known=True,
            dynamic=dynamic,
            spares=1 if dynamic else 0,
            start=False,
        )
        self.on_effect = self._show

    def detail(self, text: str) -> None:
        """Show a message, a save or a flush. A line that the step has shown already is left out."""
        if not self.short and text not in self.trace:
            self.trace.append(text)

    def _show(self, node: RaftNode, effect: Effect) -> None:
        me = node.me.id
        if isinstance(effect, effects.Send):
            letter = Letter(me, abs(effect.voter_id), effect.token, effect.request, False)
            self._requests[me, effect.token] = effect.request
            if (me, letter.target) in self.cut:
                self._show_request(letter, "; the message is lost")
        elif text := effect_text(effect):
            self.trace.append(f"node {me} {text}")

    def _show_request(self, letter: Letter, outcome: str = "") -> None:
        text = request_text(letter) + outcome
        if isinstance(letter.message, messages.FetchRequest):
            if self.short or self._fetches.get(letter.source) == text:
                return
            self._fetches[letter.source] = text
        self.detail(text)

    def request_of(self, letter: Letter) -> messages.Request:
        """Return the request that the message is, or answers."""
        sender = letter.target if letter.is_response else letter.source
        return self._requests[sender, letter.token]

    def text_of(self, letter: Letter) -> str:
        """Return the sentence of a message, or an empty text for an answer without news."""
        if letter.is_response:
            return response_text(letter, self.request_of(letter))
        return request_text(letter)

    def deliver(self, letter: Letter, *, keep: bool = False) -> None:
        """Show the message and hand it to its node."""
        if letter.is_response:
            if text := self.text_of(letter):
                self.detail(text)
        elif self.nodes[letter.target].raft is None:
            self._show_request(letter, f"; node {letter.target} is down")
        else:
            self._show_request(letter)
        super().deliver(letter, keep=keep)

    def save(self, node_id: int) -> None:
        """Show the election that becomes durable."""
        election = self.nodes[node_id].saving
        assert election is not None
        self.detail(saved_text(node_id, election))
        super().save(node_id)

    def flush(self, node_id: int) -> None:
        """Show the flush that ends."""
        offset = self.nodes[node_id].flushes[0].offset
        self.detail(f"node {node_id} has flushed its log up to offset {offset}")
        super().flush(node_id)
