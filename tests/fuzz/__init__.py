"""Fuzzers of everything that reads bytes from outside: ports, node messages, batches and files.

A target (`targets`) is fed inputs one at a time. `requests`, `messages` and `stored` derive inputs
from the declared schemas, `mutations` damages them. `engine` runs a target: with fixed seeds and a
number of inputs in `make test`, guided by coverage and for minutes in `make test-long`. What a
target may raise for bad input is part of the target. Any other exception is a crash, which the
engine reports as one line that `python -m tests.fuzz replay` takes.
"""
