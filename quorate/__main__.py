"""The entry point of `python -m quorate`, which is the `quorate` command."""

from __future__ import annotations

from quorate.cli.main import main

main(prog_name="quorate")
