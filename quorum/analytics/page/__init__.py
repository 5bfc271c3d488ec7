"""The report of a cluster's history: one self-contained HTML page, and Parquet files.

Files in reading order:

- `report.py`: the command `quorate history report`.
- `scope.py`, `digest.py`: the rows of the page, which Spark counts and chooses.
- `page.py`, `page_tables.py`, `page_timeline.py`, `page_axis.py`: the parts of the page.
- `page_text.py`, `page_assets.py`: its words; its style and scripts.
"""
