"""What Quorate costs, measured from outside: one module per row of the table in README.md.

`python -m benchmarks` runs all, `python -m benchmarks.produce` one. Figures mean something only as
ratios: against a peer under the same load in the same run, or against what the machine can do.
"""
