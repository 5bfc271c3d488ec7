"""Workloads of further clients. A seed draws some of them, in addition to its producers and
administrators.

A new workload is a class with the methods of `Workload` and a row in `table.py`.
"""
