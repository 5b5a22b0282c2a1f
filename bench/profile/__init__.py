"""Where the time of a model goes: one session watched from cold start to close, and what is made of it.

`python main.py profile …` and the Timeline page. Each case (model, backend, precision, batch) has a
process of its own, `python -m bench.profile.measure.worker`, so that its start is cold and what the
process used is the case's alone.

- `bench.profile.records` (ProfileJob, CaseProfile) and `bench.profile.events` (Activity, ApiCall,
  Interval, Mark, all on the worker's perf_counter from the start of its process; reaches nothing but
  msgspec), `bench.profile.plan`, `bench.profile.kind` (what a profile
  is among the kinds of run: `profile.json`, `results.jsonl`), `bench.profile.event_files`
  (`events/<case>.jsonl.gz`), `bench.profile.cli`.
- In the worker, `bench.profile.measure.runner`: a cold start told apart (`bench.profile.measure.cold`),
  samples and host-to-host passes without any profiler, then `bench.profile.measure.session`: a session from
  its creation to its close under the profilers, put together by `bench.profile.measure.merge`.
  `engine.cuda.cupti` is the one module that imports cupti, when a recording starts; records of waiting
  and of memory go to the calls they are of (`engine.cuda.cupti`). What preparing a session spends its
  time on are spans (`kernels.spans`); `engine.ort.profile` has ONNX Runtime profile a session, and
  `bench.profile.measure.ort` brings that onto our clock. `bench.profile.measure.attribution`: kernels of
  our engine by the order in which a pass starts them (`engine.backend.Launching`), ONNX Runtime's by the
  interval of its profile in which they were launched. A kernel that does several steps
  (`engine.cuda.replays.one_kernel`) tells them apart by clock stamps, in launches of a build of its own by
  a session without the profiler (`engine.backend.Parted`); they are kept as intervals "inside" each of its
  launches, and `bench.profile.events.steps_apart` has them in its place.
- While CUPTI records, a CUDA graph of 100 kernels took 1.8 ms longer by its events than its kernels' sum
  (14.06 ms, on an H200): such gaps in a profiled pass are the profiler's, which is why unprofiled passes
  stand beside it. Kernels' sums are held to the events of replays without the recorder, before and after,
  to 3 % (`tests.bench.profile.test_gpu`).
- `profile --counters`: `bench.profile.measure.ncu` starts `python -m bench.profile.measure.counters_pass`
  under Nsight Compute's `ncu`, one pass of plain launches between cudaProfilerStart and cudaProfilerStop;
  `bench.profile.measure.counters` brings its table to the profiled kernels (`Activity.counters`) by launch
  order, name and grid. Where `ncu` is not there or not permitted, a note says what would help.
- `bench.profile.parts`: every nanosecond of a window given to one thing, so that the parts add up.
  Copying between pageable and page-locked memory is "staging" (spans of `engine.cuda.runtime`), what
  ONNX Runtime's profile has of its run is "ort"; what else the host's thread does in a stage of a pass,
  without a call into CUDA and with nothing on the device, is "host", where something of that pass was
  recorded and as far as the thread had a core by its CPU clock; "rest" is what is not explained.
  `bench.profile.api`: CUDA's calls by purpose and family. `bench.profile.measure.process`: what the
  process used. `bench.profile.show.tables` (in nvprof's form, of `bench.profile.show.lines` under
  `bench.profile.show.columns`; names by `bench.profile.show.names`), `bench.profile.show.course` (a course
  report's big table),
  `bench.profile.show.findings` (roofline of an operator, and its sentence:
  `bench.profile.show.sentences`), `bench.profile.show.remarks` (a case in sentences),
  `bench.profile.show.output`, `bench.profile.show.trace` (Chrome's format, read back too),
  `bench.profile.show.charts` (with `profile_roofline`, `profile_common`), `bench.profile.show.draw_timeline`,
  `bench.profile.show.report` (`runs report` of profiles).
"""
