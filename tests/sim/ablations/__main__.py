"""The command of `make break`: `python -m tests.sim.ablations NAME [OUT]`.

It prints the history that breaks without the safeguard NAME. `table` prints the table of README.md,
and `find NAME` looks for seeds.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path

from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.page import page
from tests.sim.ablations.recording import recorded
from tests.sim.ablations.shrink import replay, shortest
from tests.sim.ablations.stories import BROKEN, PartitionWalk, RaftWalk, Scene, said
from tests.sim.ablations.table import ABLATIONS, rows
from tests.sim.ablations.trace import Event, Kind, Trace

OUT = "break.html"
MAX_EVENTS = 150
SEEDS = 2000


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def broken(ablation: Ablation) -> Trace:
    """Return the shortest history that was found, with the invariant that it breaks at its end."""
    trace, story = Trace(), ablation.story
    with ablation.in_force():
        moves = shortest(story, ablation.caught) if isinstance(story, RaftWalk) else None
        try:
            with recorded(trace, story):
                if moves is not None and isinstance(story, RaftWalk):
                    replay(story, moves)
                else:
                    story.tell()
        except BROKEN as error:
            last_ms = trace.events[-1].time_ms if trace.events else 0.0
            trace.events.append(Event(last_ms, "", Kind.BROKEN, said(error)))
    return trace


def tell(ablation: Ablation, out: str) -> int:
    trace = broken(ablation).readable(MAX_EVENTS)
    say(f"without: {ablation.safeguard} ({ablation.replaced}); {ablation.story.name}\n")
    if trace.left_out:
        say(f"... {trace.left_out} events before ...")
    for line in trace.lines():
        say(line)
    if trace.events[-1].kind is not Kind.BROKEN:
        say(f"\nnothing broke: `find {ablation.name}` looks for another seed")
        return 1
    subtitle = (
        f"Without “{ablation.safeguard}” ({ablation.replaced} replaced): {ablation.story.name}"
    )
    content = page(trace, ablation.name, subtitle, trace.events[-1].text)
    Path(out).write_text(content, encoding="utf-8")
    say(f"\n{out}: the same as a sequence diagram")
    return 0


def find(ablation: Ablation) -> int:
    """Say the first seed with which the story breaks in the stated way. Return the exit code."""
    story = ablation.story
    if not isinstance(story, RaftWalk | PartitionWalk | Scene):
        say("a script has no seed")
        return 1
    with ablation.in_force():
        for seed in range(SEEDS):
            try:
                replace(story, seed=seed).tell()
            except BROKEN as error:
                if ablation.caught in said(error):
                    say(f"seed {seed}: {said(error)}")
                    return 0
    say(f"none of {SEEDS} seeds")
    return 1


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["table"]:
        say("\n".join(rows()))
        return 0
    names = [each for each in arguments if each in ABLATIONS]
    if not names:
        for each in ABLATIONS.values():
            say(f"{each.name:26} {each.safeguard}")
        if arguments:
            name = next((each for each in arguments if each != "find"), "")
            sys.stderr.write(f"no safeguard {name!r}: name one of these\n")
        return 1 if arguments else 0
    ablation = ABLATIONS[names[0]]
    if arguments[0] == "find":
        return find(ablation)
    return tell(ablation, arguments[1] if len(arguments) > 1 else OUT)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(main([each for each in sys.argv[1:] if each]))
