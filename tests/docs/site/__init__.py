"""The documentation site: the pages of the repository, and pages that are made from the code.

`make docs` assembles the pages below build/pages, and mkdocs builds build/site from them. A page
keeps its place in the repository. `docs/mkdocs.yml` gives it its place in the navigation.

In reading order: `pages.py` names the pages and assembles them, `links.py` turns their links,
`drawings.py` replaces diagrams that need a script from the network, `source_files.py` makes pages
of files that are not Markdown, `navigation.py` reads `docs/mkdocs.yml`, and `built.py` checks the
HTML.
"""
