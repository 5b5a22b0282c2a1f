"""The ladder: every kernel of ours, one rung a file, and what describes them.

The lowest layer: it imports nothing of the project but itself.

- `kernels.errors`: the exception tree; every error a user can meet is one sentence. `kernels.cache`: the
  cache folder, `atomic_file`. `kernels.cache`: small files in it, found again by what they were found on.
  `kernels.nearest`: `did_you_mean`. Every layer uses these.
- `kernels.ops`: one file an operator, with its record (`Conv`, `Gemm`, …): what a kernel is told, on all
  devices, and all that the engine and the judge have to know of the operator: shapes, weights, rows,
  arguments, how it divides among threads, small shapes (`kernels.ops.Params` says what).
- `kernels.header`: the closed vocabulary of a rung's header.
- `kernels.registry`: reads the folders. `rungs(device, op, extra_dirs=()) -> tuple[Rung, ...]` in rung
  order; `find(device, op, name_or_number, extra_dirs=()) -> Rung`; `Rung` = device, op, number, name
  ("tiled"), idea, launch, defines, needs, path, source, user; `Rung.refusal(params, capability=None) ->
  str | None` answers whether the rung applies, in words. A header that is not valid TOML of the closed
  vocabulary, or two files with one number, raises KernelError naming the file.
- `kernels/cuda/<op>/NN_name.cu`: first comment `/* … */` is the TOML header. `kernels/cuda/*.cuh`: what
  rungs share and none of them is about; a rung's own idea stands in its file, also where its neighbour
  has most of it word for word. Rungs on `conv_tensor` and `gemm_tensor` differ in what they compute in
  alone: their kernels stand in the header of that name, included behind the struct that says it (a
  function of the same text was compiled into other code). `whole_image.cuh` is the kernel of convolutions
  whose image fits into shared memory, alone (conv 23) and with their pool (conv_pool 2): each says what
  becomes of a window of outputs.
- `kernels/cpu/<op>/NN_name.py`: leading `#` comment lines are the TOML header; the file defines `bind(p,
  inputs, output, workspace) -> Callable[[], None]` (NumPy arrays; builds its views once, the function
  returned is one forward pass and writes the output in place), and where they help `workspace(p) -> int`
  (bytes of float32 scratch) and `pack(p, inputs_or_none) -> list` (done once at prepare on the inputs
  that are weights, None for the others; `bind` is then given the packed arrays). `kernels.cpu.load(rung)
  -> CpuKernel` gives these functions with the optional ones filled in. A step may be divided: `workspace`
  and `bind` are then told of a part (`kernels.cpu.split`), `pack` of the whole.
- `registry.default(device, params, capability=None) -> Rung`: the first of ours that
  applies, from the highest `priority` of a header down (its number where there is none). A rung whose
  header says `side = true` stands beside the ladder: it is shown, and taken only where it is named or was
  timed to be the fastest (`registry.beside`); a library's (`yardstick`) only where it is named.
- `kernels.launch`: launch shapes by name: params → (grid, block, shared bytes, arguments). A launch may
  have further stages and scratch memory (`Launch.stages`, `.workspace_nbytes`, `.arguments`); a stage may
  be told of some images of the batch alone, or be a `Product`, which a library does for a yardstick
  (`engine.cuda.stages`). `engine.cuda.stages.starts` makes a launch ready on the device.
- `kernels.estimates`: where the work of a launch can be shared out in many ways (tiles and parts of a sum,
  `whole_image.Share`, `cluster.Spread`, `sliced.SlicedTile`), an estimate of the time picks one, its
  constants fitted to timed launches: a line above them says to which; the device they were timed on is
  `kernels.estimates.fitted_device`. `kernels.occupancy`: how many blocks fit a multiprocessor.
- `kernels/cuda/mma.cuh`: products on tensor cores (`mma.sync`), and how their operands lie in shared
  memory. `kernels.packing`: weights laid out for it, once;
  `packing_scaled`: as float16 with a scale a column.
- `kernels.languages`: CUDA rungs in Python, compiled by a process apart.
- `kernels.nvrtc`: `compile_rung(rung, arch, defines) -> Path` of a cubin in the disk cache, through
  `cuda.bindings.nvrtc`, which needs no GPU; compile errors raise KernelError with the compiler's message
  and the line of the rung's file.
"""
