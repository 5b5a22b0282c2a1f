"""Our inference engine: Graph → passes → Plan → Session, and every backend behind one interface.

From a file to a plan:

- `graph/`: `importer.load(path)` reads an ONNX file into a `Graph` of `Node`s; `proto_checks` refuses a
  broken model with a sentence before ONNX's own checker runs. `initializers`: large weights are kept once, as
  arrays in `Graph.initializers`; parts and rewritten copies of a model share them, and ONNX Runtime gets them
  without serialisation. `normal_form` brings the variants that exporters write into one form. `Graph.refused`
  says why ONNX's checks reject the model; another backend may still run it. `shapes`: ONNX's own shape
  inference. `memory`: which tensors live at the same time, and where each lies. `plan`: `Plan`, `Step`,
  `TensorSpec`.
- `ops/`: one file for each ONNX operator or family. It checks a node, infers its shapes and lowers it to the
  params of a kernel, or refuses it with the reason. An operator without a kernel of its own is written in
  other ONNX nodes (`_nodes`).
- `passes/`: constants are folded; If, Loop, Scan and functions are written out (`control`, `written_out`);
  known patterns become one operator (`attention`, `gates`); quantized nodes are recognised (`quantized`);
  steps are fused with their activation and pool (`fuse`, `pools`); narrow types are computed in float32 and
  rounded once (`widen`). LRN is not fused into the convolution before it: it needs all neighbouring channels
  of a pixel, but a tile of the product ends among them or holds only a part of the sum.
- `planning/`: `planner.plan(graph, batch, device, precision, options)` gives a `Plan`. `choices`: what was
  timed to be the fastest on this machine, one file of the user's cache for each case; each `Step` says what
  chose its kernel: it was named, timed, the ladder's default, or taken for its layout. `layouts`: in which
  layout and element type tensors travel between steps. `runs`: the longest run of steps that can be one
  kernel (kernels.net). `image_turns`: two steps or more process a quarter of the batch at a time where
  the tensors between them decide how much memory a pass takes. `groups`: which ONNX nodes run as one step,
  the same for every backend, so that times and errors are compared over the same nodes. `submodel`: parts of
  a model as models. `exported`: a node of a model and a rung, as an operator for another library
  (kernels.exported).

What runs a plan:

- `backend`: the protocols `Backend`, `Session` and what a session may offer beyond them. `backends/`: one
  file for each backend, found by folder or by entry point.
- `cpu/`: `session` runs a plan step by step; `steps` divides a step among threads; `program` makes one call
  of compiled steps that follow each other; `rung` times one kernel alone, in an isolated process.
- `cuda/`: `session` runs a plan on a GPU; `stages` prepares the launches of a step and `calls` those of a
  plan; `stream` has the clock and the CUDA graphs; `trains` times passes in a row; `rung` runs one kernel
  alone, between guard bytes. `replays/one_kernel`: a small net as one launch, where that was timed to be
  faster. `replays/overlap`: launches that begin before the kernel in front has ended.
- `ort/`: ONNX Runtime as the reference. `rivals/`: PyTorch and OpenVINO, each in a process of the Python that
  has the package.
- `isolated/`: isolated processes. Python kernels, ONNX Runtime on the CPU and rivals run in them. Such a
  process knows no clock that counts, no expected answer, and nothing that the worker says to its parent.
  `client.Child` is the worker's side of it, `child` the other. Arrays lie in shared memory (`memory`,
  `arrays`); answers are decoded to known types (`messages`). A process with a user's kernel gets one pass at
  a time: it stops itself after each; while it is stopped the worker writes the next inputs and reads the
  answer. The time of a pass is the worker's, from waking the process until it has stopped. Other isolated
  processes run trains of passes by themselves over several `slots`. What waking takes without a kernel is
  measured in a process that never ran a user's kernel (`empty`), and subtracted. `watched`: that a kernel's
  process starts no other process, does nothing while it is stopped, and changes nothing of others.

While passes are timed:

- `stirring`: before each timed pass a few values of every input change, and a few of every output are
  overwritten with NaN. Where and with what follows from a secret seed and the number of the pass, so that the
  pass can be computed again (`Stirring.inputs_of`). `cuda.stirring` does the same in one launch. Some passes
  are recorded (`Witness`) and compared afterwards (`bench.measure.answers.timed_pass`). `Renewable` sessions
  also run passes over inputs that are all new. What this takes is measured alone and subtracted.
- `end_to_end`, `pipelines`: batches from host memory to answers in host memory, several in flight.
- `machine/`: the host's cores, caches, memory and load; the driver of the GPU. `probe`: what the machine can
  do at most."""
