"""Measuring: the worker process, its contenders, timing and checks. Reaches the engine.

The worker is a process of its own: `python -m bench.measure.worker`, a Job with its cases as one JSON
line on standard input, one `bench.results.messages.Message` a line on standard output. First thing:
keep file descriptor 1 for the protocol and point stdout at stderr, so that device printf and library
chatter cannot corrupt a message. A kernel that faults kills the worker, never the parent: the client
writes the crashed case into the run, starts a worker anew and goes on. A case is charged with its own
time alone (contenders take turns), and given up beyond `--timeout`. Closing the worker's standard input
asks it to stop, and so does the parent's death; a worker whose GPU failed ends with status 75, which asks
for a new one, at most 30 times a case. Each case is checked before it is timed, after it (timed passes
drawn among all, rebuilt from their numbers: the same as an untimed pass, which is right by float64), and
once more on other images. One loop does that for every kind of run (`bench.measure.runner`);
`bench.measure.net_runner` says which cases of a comparison are a group, and `net_contender` runs one. After
a case's first round the worker says what a pass takes so far (`Provisional`): drawn hollow until the
measurement comes (`bench.views.charts`), never stored, exported or judged. Once all of a group are timed
and right, it says their figures in the same way, and looks at images and layers behind them; what comes of
those may still be another result.

A run is a folder: `run.json` (bench.results.records.Run), `results.jsonl` (a Measurement a line, flushed
as it comes), `predictions/<case key>.npz` (label, predicted, confidence of each image),
`predictions/images-<data set>-n<images>.npz` (the images, at most 10,000 of at most 64 × 64 pixels, once
for all cases that share them), `layers/<case key>.npz`. `--resume` goes on from there.
`bench.results.gallery` reads images and answers without an engine.
"""
