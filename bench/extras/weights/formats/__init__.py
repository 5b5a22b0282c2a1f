"""One module a format of weights, found by its file: `matches(path, head)`, `read(path) -> Found`, and
`UNDERSTOOD`, what it reads in words. A reader raises ModelError in words that fit behind the file's name and
a colon, runs nothing of a file, and takes no more memory than a small multiple of it."""
