"""Replaces one rule in every process whose PYTHONPATH contains this directory.

QUORATE_ABLATION names the rule (`tests/chaos/ablated.py`). Unlike the command in that module, this
also reaches the nodes that a scenario run starts again."""

from __future__ import annotations

import os

if rule := os.environ.get("QUORATE_ABLATION"):
    from tests.chaos.ablated import ablate

    ablate(rule)
