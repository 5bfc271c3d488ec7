"""The options that each action of `quorate reassign-partitions` takes.

Kafka's tool refuses the others with the same words. An option that the action ignored would deceive
the operator: `--execute --reassignment-json-file plan.json --topic t` moved the other topics of the
plan, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from quorate.cli.parsing.option_rules import is_given

ACTIONS_OF = {
    "reassignment_json_file": ("execute", "verify", "cancel"),
    "topics_to_move_json_file": ("generate",),
    "broker_list": ("generate",),
    "disable_rack_aware": ("generate",),
    "additional": ("execute",),
    "throttle": ("execute",),
    "replica_alter_log_dirs_throttle": ("execute",),
    "preserve_throttles": ("verify", "cancel"),
    "output": ("generate", "verify", "list"),
}
OF_PLANS = {
    **ACTIONS_OF,
    "reassignment_json_file": (),
    "topics_to_move_json_file": (),
    "broker_list": ("generate", "execute"),
    "disable_rack_aware": ("generate", "execute"),
}
"""The same with --replication-factor, which makes a plan without a file."""


def refuse_ignored(action: str, given: Mapping[str, object], *, plans: bool) -> None:
    """Raise UsageError for an option that the action would ignore.

    `given` has the value of each option, None, False or "text" if it is not given. `plans` is True
    with --replication-factor."""
    permitted = OF_PLANS if plans else {**ACTIONS_OF, "topic": ()}
    for name, actions in permitted.items():
        if not is_given(given[name]) or given[name] == "text" or action in actions:
            continue
        option = "format" if name == "output" else name.replace("_", "-")
        raise click.UsageError(f'Option "{option}" can\'t be used with action "{action}"')
