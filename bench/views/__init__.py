"""Results as people read them. Nothing here measures, and nothing here knows a worker or the engine.

- `charts`: records become charts as data; `drawing`: matplotlib draws them (the window does so in gui/plots).
- `tables`: columns and rows as data; a table becomes CSV, JSON, Markdown, terminal or Qt.
- `sentences`: what is said of results. `diff`: two runs held against each other.
- `reports`: Markdown and HTML, by one set of templates.
- `comparison`, `ladder`, `profile`: what the view of each kind declares: what is printed, exported, told in a
  list and left out of a small copy.
"""
