"""What was measured: records, what lies in their folders, rows and their statistics. Reaches no engine.

What every kind of run has in common, whichever kinds there are: `kinds` (the descriptor, and which there
are), `folder` (one run on the disk), `folders` (one of any kind opened, copied), `summaries` (one as a line
of a list, read quickly), `note` (what the user calls one), `thin` (one made small enough to send), `packed`
(one as a single file).
`sample_run` is a comparison thinned (`python main.py runs thin RUN bench/results/sample_run` made it),
`sample_ladder` and `sample_profile` are a ladder and a profile: with them every page has something to show.

A run's folder may come from anybody (SECURITY.md says what is trusted). Whatever reads one goes through
these:
- `bench.results.inside`: names that a record gives stay in its folder (`inside(folder, name) -> Path`;
  `own_parts`, `files`). Names of cases, rungs and data sets are checked as they are decoded
  (`bench.results.records.check_name`).
- `bench.results.reading` (files, lines, gzip, JSON) and `bench.results.npz` (arrays): limits on size,
  count and depth, regular files only; what is refused raises `Refused` with the reason, and whoever reads
  makes the sentence. `bench.words.plain` takes control characters out of what is decoded there, and
  escapes text for Markdown and CSV; `bench.words.terminal` and `gui.widgets.controls` (`Label`,
  `as_tip`) show text as text.
- `bench.results.results_file`: each line ends with a CRC-32 of what stands before it (`"sum"`, the last
  field). A damaged line is left out, told once by the logger `kernelscope.records` (standard error; the
  window's banner), and its case is missing.
- `bench.questions.model_questions`: what a command, or a worker that plans, has to know of a model
  (`cases`, `profile`, `node`, `facts`). Of a file that the user names, `bench.questions.model_reader`
  tells it, a process of its own, one question as a JSON line and one answer, within
  `bench.run.confined`'s time and memory; a model of the catalogue is looked at in process. A worker
  says `load` before it reads such a file (`bench.run.supervisor.LOAD`): what becomes of it then is told
  of all cases of that model. No other code plans.
- `bench.results.trust`: the kernels that a record names run only in runs that the user recorded here with
  the same files, or after `--trust-kernels` or the banner's button.
- `bench.results.claim`: who writes holds `.lock` in the folder; drivers (`bench.run.client.run`,
  `gui.sessions.session`) claim it, and clear what a kill left there in the making
  (`kernels.cache.clear_leftovers`; a worker clears the cache).
- `bench.words.streams`: standard output that is closed, full or of another encoding, and Ctrl-C at odd
  moments, in `main.py`.

A case whose worker was killed from outside (`facts["killed by"]` is SIGKILL or SIGTERM, and not by us) is
missing; with `--retry` so is every case that crashed or timed out (`bench.results.store.to_run_again`).
"""
