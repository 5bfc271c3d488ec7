"""`python -m tests.sim.ablations table`: the table of README.md."""

from __future__ import annotations

import sys

from tests.sim.ablations.table import rows

sys.stdout.write("\n".join(rows()) + "\n")
