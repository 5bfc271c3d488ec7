"""What clients do beside the producers and administrators of every seed. A seed draws some of it.

A new workload is a class with the methods of `Workload` and a row in `table.py`.
"""
