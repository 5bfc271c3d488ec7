"""The report of a cluster's history: one self-contained HTML page, and Parquet files.

Files in reading order:

- `report.py`: the command `quorate history report`.
- `page.py`, `page_tables.py`, `page_timeline.py`: the parts of the page.
- `page_text.py`, `page_assets.py`: its words; its style and script.
"""
