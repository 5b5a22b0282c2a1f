"""The comparison: cases, timing, records, charts, reports, and the worker process.

- `bench.results.records`: Job, Case, Measurement, Environment, Run and the worker's messages. Reaches
  nothing but msgspec.
- `bench.results.doubt`: what speaks against a figure (its measurement's warnings, one sample alone, and
  of a ratio also those of the reference: `Row.own_doubts`, `Row.doubts`) and the mark it bears wherever
  it stands: behind it in tables, as a hollow, hatched point (`Point.doubts`) or bar, behind what stands above
  its bar; `bench.charts.doubts` counts them in a chart's headline and tells why in its notes.
- `bench.results.stats`: medians and ratios of medians with their intervals, by Student's t
  (`bench.results.stats.student`) over instances or rounds; SAME / UNCLEAR / FASTER / SLOWER, and why a
  verdict is not decided; on the host's clock by a low quantile where that is known better; none on a
  machine that others hold (`bench.results.stats.load`). `bench.measure.unrest`: when a median moved so far
  that it is told. An interval of one sample is not known, is shown nowhere, and gives no verdict.
  `bench.results.stats.medians`: the median on a coarse clock, its bootstrap, samples by round.
- `bench.measure.timing`: warm-up, interleaved rounds over several contenders, each one session or several
  instances of it that take its rounds in turn (`bench.measure.instances`: how many there are, and that
  each gives what the first gives; `Job.instances`, 1 in records from before); `bench.measure.stopping`:
  when they have enough (the verdict is clear, the median known, more rounds would not help, the budget is
  spent). `docs/trust.md`: how often intervals and verdicts are right, by `tests/bench/results/coverage`.
- `bench.measure.answers.oracle`: `onnx.reference` in float64 with its known faults mended
  (`bench.measure.answers.operators.mended`); golden tensors kept by content hash.
- `bench.measure.answers.accuracy`: tensor errors and verdicts, top-k, agreement, layer-by-layer errors.
- `bench.measure.answers.layers`: a model operator by operator: errors fed golden inputs, errors carried
  along (`bench.measure.answers.layer_errors`), times. `bench.measure.images.predictions`: a session over a
  data set's images.
- `bench.results.rows`: measurements with what is derived of them (medians, ratios, verdicts), for charts
  and tables. `bench.results.row_cache` derives them one at a time while a table grows. `bench/commands/`:
  one module a command of `main.py`; `bench.run.progress` tells on
  standard error how far a run of any kind is;
  `bench.measure.reporter` is how the worker's runners tell it.
- `bench.measure.cases`: Job → cases in groups that are timed together; `Job.batches_of(model)` and
  `images_of` heed a model's own sizes; `bench.measure.rung_check`: nodes, rungs and the user's kernel
  files, before anything runs; `bench.run.bounds`: what a job may ask for, and about how long it takes.
  `bench.run.defaults.JOB`: the default comparison. `bench.kinds.options`: a job as its command line.
  `bench.measure.worker`: the process, JSON lines; `bench.measure.runner`: group by group;
  `bench.measure.contender`: one case from prepare to Measurement (`bench.measure.outcomes`: what an
  exception makes of it, and whether the device outlived it; `bench.measure.answers.layer_check`: its
  layers, each checked alone before anything is timed, by `bench.measure.answers.layer_errors`);
  `bench.measure.loaded_model`: what the cases of one model share (graph, images, golden answers, the
  reference's answers); `bench.results.artifacts`: the npz files.
- `bench.measure.tuned.tuning`: what a case needs measured before it is prepared; the kernels of all batch
  sizes are compiled ahead, while float64 is worked out;
  `bench.measure.tuned.sweep`: one `Sweep` for all that is chosen by time (each variant judged and looked at
  shortly, the best timed together, the winner judged once more), stored before each variant runs.
- `bench.measure.tuned.rungs`: the sweep over our rungs for each step of a plan, judged in some images of the
  batch (`bench.judge.batch_check`), the one to take in every image. Inputs and answer are the same at every
  batch size (`bench.judge.samples.repeated`), the answer kept as golden ones are.
  `bench.measure.tuned.layouts`: over the ways in which a plan's tensors may be laid out.
- `bench.measure.tuned.reference`: over the configurations of the reference; `bench.measure.tuned.layers`:
  its checks of layers, each once for all configurations that are the same for it
  (`engine.ort.tuning.bearing`). `bench.measure.tuned.doubted`: a kept winner that comes wrong in a case
  makes room for the next best. `bench.measure.tuned.same_configuration`: variants for which one
  configuration was chosen are one case under two names, measured once.
- `bench.run.supervisor`: the state machine that watches a worker (bytes, exits, ticks in; actions out),
  without processes or clocks, so that the window and the headless client drive the same one.
  `bench.run.client`: drives it by subprocess and writes the folder (`bench.results.results_file`: its lines).
- `bench.kinds`: what comparisons, ladders and profiles have in common; `bench.comparison`: what a comparison
  is among them. Which kinds there are is found by their files, `bench/*/kind.py`; their commands,
  `bench/*/cli.py`.
- `bench.fleet`: cases handed to several devices, here or of a Ray cluster, one measurement at a time on each;
  `bench.course`: a class graded with it (docs/teaching.md, docs/fleet.md).
- `bench.charts`: records → chart definitions (data), each with a sentence (`findings`) and its small
  print (`footer`); `charts.scoreboard`: each backend beside its reference, by batch size, and
  `charts.verdicts`: what that comes to, in a line; `charts.lay_over` puts a second run's lines into them,
  `charts.precision_charts` makes those of many rivals, one a precision (of more than `verdicts.CROWDED`, in
  reports, exports and the window). `bench.show.draw` (`draw_panels`, `draw_tiles`, `page`,
  `draw_together`): matplotlib; `bench.show.scoreboard`: the scoreboard as a table; `bench.show.looks`: how
  wide a picture is, what stands on it, its caption. `bench.show.table`: a table as data, and as
  CSV, JSON and Markdown; `bench.show.grid`: by rich; `bench.show.tables`, `terminal_tables` and
  `run_tables`: whose columns there are, and which a terminal shows. `bench.comparison.report`: run folders →
  one document by a jinja2 template (`bench/show/templates`), HTML or Markdown (`report_form`, `report_html`,
  `report_files`), with the
  sentences of `bench.show.overview`.
- `bench.goals`: speed goals, data a kind of machine, held against two runs of each comparison that they need
  (`report goals`): reached, not reached or open, by intervals; why, by a case's floor and its longest step.
- `bench.measure.selfcheck`: a backend against itself, or against itself made slower
  (`bench.measure.selfcheck.planted`), prepared, timed and judged as two are: how often the interval of the
  ratio misses the truth, with exact bounds (`bench.results.rates`); its file keeps the samples, is gone on
  with over several calls, and judged again (`bench.measure.selfcheck.again`).
- `bench.measure.possible`: a time below a true lower bound (bytes that no cache holds, multiplications of
  products; none of convolutions) is no result: the measurement is `invalid`, with its reason and without
  its samples, so that it tops no ladder and nothing is compared with it. `compare` asks it by what a
  ladder measured of the machine before, and claims nothing else.
- `bench.measure.environment`, `bench.measure.telemetry`, `bench.run.nvml`, `bench.commands.checks`: the
  machine. `bench.run.pick_extra`: which set of dependencies fits it, for `make`, before any is there.
"""
