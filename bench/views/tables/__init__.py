"""Tables as data: a column says once what it reads from a row and how it is written. A table becomes CSV,
JSON, Markdown, terminal or Qt."""
