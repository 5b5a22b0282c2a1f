"""A fourth kind of run in four files: numbers squared. `tests.bench.results.test_fourth_kind` puts it beside
the others."""
