"""The language of scenario files.

scenario.py has their parts, steps.py the kinds of steps, and keys.py the rules of values.
"""
