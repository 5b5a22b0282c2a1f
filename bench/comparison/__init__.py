"""The comparison as a kind of run (bench.kinds): models on backends over batch sizes.

Its records are `bench.results.records`, its messages `bench.results.messages`, its worker
`bench.measure.worker`; `thin`: it made small; `saved`: one from before shown and exported; its tables and
reports are in `bench.show`, its charts in `bench.charts`.
"""
