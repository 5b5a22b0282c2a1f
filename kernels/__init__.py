"""The ladder: every kernel of ours, one file each (a *rung*), and what describes them. The lowest layer: it
imports nothing of the project but itself.

What a kernel is:

- `ops/`: one file for each operator. Its record (`Conv`, `Gemm`, …) has the sizes that kernels get on all
  devices, and all that the engine and the judge have to know: shapes, weights, arguments, how the work
  divides among threads, small shapes for tests (see `ops.Params`).
- `cuda/<op>/NN_name.cu`: the first comment is the header, in TOML. `cuda/*.cuh`: code that several rungs
  share. The idea of a rung stands in its own file. Rungs on `conv_tensor` and `gemm_tensor` differ only in
  what they compute in: their kernels stand in the header of that name, included behind the struct that says
  it.
- `cpu/<op>/NN_name.py`: the header is in the leading `#` lines. The file defines `bind(p, inputs, output,
  workspace)`, which returns a function that does one pass, and, where they help, `workspace(p)` (bytes of
  scratch) and `pack(p, inputs)` (weights rearranged once). See kernels.cpu.
- `header`: what a header may say. `registry`: finds and reads the files: `rungs(device, op)`, `find(device,
  op, name)`, `default(device, params)`; `Rung.refusal(params)` says why a rung cannot run these sizes.
- Which rung an engine takes: the one of the highest `priority` that applies, or the one that was timed to be
  the fastest. A rung with `side = true` is taken only where it is named or was timed to be the fastest
  (`registry.side_rungs`); a `yardstick`, which calls a library, only where it is named.

From a file to a launch:

- `nvrtc`: compiles a rung to a cubin, which needs no GPU; kept in the cache. `cubin`: what that asks of a
  GPU's memory. `compilers`: several at a time, in processes. `languages/`: CUDA rungs in Python, compiled in
  an isolated process.
- `launch/`: launch shapes by name: from params to grid, block, shared memory and arguments. `estimates/`:
  where the work can be shared out in many ways, an estimate of the time picks one; its constants are fitted
  to timed launches on the device of `estimates.fitted_device`. `occupancy`: how many blocks fit on a
  multiprocessor.
- `exported/`: a rung as an operator of another library, which needs nothing of this program.
- `packing`: weights rearranged for tensor cores, once. `layouts`: the order of axes and the element type of
  tensors between steps. `net/`: a run of steps of a net as one kernel.

For every layer:

- `errors`: the exceptions; each that a user can meet is one sentence. `cache`: the cache folder, atomic
  files, small JSON entries. `nearest`: `did_you_mean`. `precision`: what is known of each precision.
  `processes`: how processes stop, go on and end. `confine`: limits of what a process may do. `spans`: times
  of named parts."""
