"""The ladder of an operator: its rungs planned, checked, timed beside the reference, told and kept.

`python main.py ladder …` (docs/writing-a-kernel.md) runs one operator's rungs on one params record in the
worker.

- `engine.rung_session`: `prepare(rung, params, inputs, threads) -> RungSession`: one rung alone, guard
  bytes round every buffer; `bind`, `poison`, `run`, `output`, `strays`, `time_runs`. One class a device,
  derived from the session of a net there
  (`engine.cpu.rung`, `engine.cuda.rung`). `engine.rung_rows`: `Rows`, a batch held as the few rows
  (images, rows of a product) that it repeats: those alone go to the device, which lays out the rest.
- `bench.measure.answers.one_node`: params → an ONNX model of one node, for the oracle and the reference.
  `bench.judge`: `examine(rung, params) -> Trial`, or `Wrong` with a `Finding` (which fault, where,
  expected, got) and an error map; the small shapes are those of the operator's params. `diagnosis` names
  the mistake that explains every failing shape: one of `mistakes/` (a function an operator: each mistake
  with the answer that it gives), or a factor, an amount, a rounding; where none does, `places` says where
  it is wrong. `tests/bench/judge`: mistakes planted, with what is said of them (`python -m
  tests.bench.judge.mistakes`), and right rungs, none of which may be accused (`… .honest`).
- `bench.results.ladder_records` (LadderJob, RungCase, RungMeasurement, Ladder; reaches nothing but
  msgspec), `bench.questions.ladder_plan` (what was typed → job and cases), `bench.measure.ladder.runner` (in
  the worker; `entrants`: a case made ready to be timed; `ahead`: CUDA rungs compiled while others are
  checked), `bench.run.kinds.ladder` (what a ladder is among the
  kinds of run: `ladder.json`, `results.jsonl`, `errors/<rung>.npz`), `bench.commands.ladder`,
  `bench.results.ladder_rows`, `bench.views.tables.ladder_tables`, `bench.views.charts.ladder_charts`,
  `bench.commands.ladder_watch` (by `bench.run.watching`; `again`: what a saved rung is compared with is
  timed anew, together with it, once its verdict is shown), `bench.measure.ladder.warm` (what a worker loads
  and rehearses before it has a job, the next one's as soon as one has ended),
  `bench.questions.rung_template`. `bench.measure.limits` and `engine.probe`: what the machine was measured to
  reach, copying (in memory, and within its caches), in float32 and on its matrix units.
- `bench.measure.net_operator`: a whole net as an operator; its rungs are ways of putting the steps together
  (`engine.net_rungs`: what a session is asked for, and the fact by which it says that it did so), prepared,
  checked and multiplied as a comparison's contenders.
- A rung is judged by its own precision's bound and held against the reference in that precision (`fp32-tc`
  against fp32's) and against the rung below it in that precision; what stands beside the ladder (side
  rungs, a library's, the first of another precision) against the ladder's highest in fp32
  (`bench.results.ladder_rows`).
- `bench.judge.trial` (with `samples`: inputs and the oracle's answers, and `comparison`): an answer beyond
  64 MiB is fetched and judged piece by piece, and while timing in images drawn anew (`samples.looked_at`:
  ends, middle, where indices of 32 bits overflow, edges of tiles, others).
- `bench.questions.ladder_questions`, `bench.measure.ladder.describe`: a worker with `--describe` times
  nothing and answers questions, a line each: a model's nodes, the rungs with their text and why one is
  refused, a ladder ready to run, a template written. A file of the user's that is no rung is told beside the
  ladder, which goes on without it (`registry.rungs(…, broken)`).
- `ladder --compile` (`bench.commands.ladder_compile`): `bench.measure.ladder.compiled` compiles every rung
  for architectures by name and takes the compile-time facts that a rung's session has, without a device;
  `bench.views.tables.compiled_tables`.
- Without a GPU (`bench.measure.ladder.simulated`) a CUDA rung runs on the CPU (`kernels.ptx`), is judged by
  the same `bench.judge` and counted: `ladder --device cuda` there, `judge --simulated`, courses, `--counts`
  beside times. `counts`: what a line costs beyond what it must, as sentences; `line_counts`: each line of a
  rung, for the window; `bench.judge.remedies`: what ends a mistake; `kernels.gpus`: floors from data sheets.
- `bench.run.chosen_rungs`: `--rung [MODEL:]NODE=[DEVICE/]RUNG`; `Material.options_for(device)` has those
  meant for it. `bench.views.charts.ladder_charts`: a
  ladder's charts while it is climbed, from what each rung takes so far (`Provisional`).
- A ladder's folder is a run's sibling: `runs list`, `runs show`, the window's Runs page, `export` and
  `ladder --resume` know it; a profile's too, but for the last. A ladder opened in the window is shown as it
  was recorded, and nothing of it mixes with what is measured then (`LadderState.opened`). `runs report` of
  ladders: `bench.views.reports.ladder_report` (`report_tables`), its sentences by
  `bench.views.sentences.ladder_story` out of a rung's own figures, and a course's published times
  (`bench/views/tables/course_times.toml`) as another machine's.
- `tests.kernels.sanitize` (`make sanitize`): every CUDA rung once on a small shape in one process, for
  compute-sanitizer.
"""
