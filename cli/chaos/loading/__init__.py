"""Scenario files: loader.py reads them, and describe.py prints them.

toml_lines.py and step_order.py name the file and the line of an error before a run starts.
"""
