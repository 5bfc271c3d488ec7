"""The forms of a result.

- result.py, schema.py, junit.py, compare.py: the result, as JSON and JUnit XML, and two of them
  compared.
- view.py, page.py, page_lanes.py, page_latencies.py: lines on a terminal, and the HTML page.
- progress.py, progress_file.py: the progress of a run, for `quorate console`.
"""
