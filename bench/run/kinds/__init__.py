"""The kinds of run: each module holds one `KIND` (bench.results.kinds), found by its file."""
