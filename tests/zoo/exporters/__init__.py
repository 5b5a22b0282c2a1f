"""One module a library that exports: `export(export, path)` writes the file of an Export with its weights."""
