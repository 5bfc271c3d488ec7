"""The entry point of `python -m quorate.cli`."""

from __future__ import annotations

from quorate.cli.main import main

main(prog_name="quorate")
