"""The pages of the reference that are made from the code when the site is built.

There is one module for each page, or for each kind of page. None of these pages is in git.
docs/metrics.md and docs/tables.md are in git, and have their modules beside this folder.
"""
