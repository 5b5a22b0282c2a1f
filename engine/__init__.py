"""Our inference engine: Graph → passes → Plan → Session, and every backend behind one interface.

- `engine.graph.graph`: `Graph`, `Node`, `TensorInfo`. `engine.graph.importer`: `load(path) -> Graph`,
  `from_proto(proto, name) -> Graph`. A bad model costs a sentence: `engine.graph.proto_checks` looks at
  names and at how large calls of model-local functions are when written out before ONNX's checker does,
  and `engine.ops.lower` makes of what an operator's file did not foresee an UnsupportedError of the node.
  `engine.graph.inference` asks ONNX for shapes, and has it follow no values of what is too long to be a
  shape. `engine.graph.initializers`: large weights are kept once, as arrays in `Graph.initializers`:
  `Graph.proto` only declares them, parts and rewritings of a model share them, and ONNX Runtime is given
  them as they are (`engine.ort.sessions`), without serialisation. `Graph.whole_proto()` puts both
  together, for whoever needs a file.
  `engine.graph.normal_form` takes away the freedom that exporters have. `Graph.refused` says what ONNX's
  checks find fault with (another backend may run it). `engine.graph.importer` leaves out what is no tensor of
  numbers, `engine.graph.sizes` gives open axes a size; `Graph.batch_axes` says which axis is the batch.
- `engine/ops/`: one file an ONNX op or family: checks it, infers shapes, lowers it to params or refuses with
  the reason. What needs no kernel of its own says in which other ONNX nodes it can be written
  (`engine.ops._nodes`).
- `engine.passes` (`trace`: from a graph to lowered nodes): constant folding, BatchNormalization and Dropout
  removal, functions in the nodes that exporters write them as (`engine.passes.gates`), Conv/Gemm/Add +
  activation grouping. Nodes that stand for others are written out: If, Loop and Scan (`control`), functions
  of the model's own, and operators that ONNX defines as functions and no file of `engine/ops` takes
  (`written_out`). What a device computes in float32 alone is fed float32 and rounds once where a file is in
  half precision (`widen`). Tanh and sigmoid go
  behind the max pool that reads them (`engine.passes.pools`: neither ever falls, so the maximum may come
  first, and of 2×2 windows a quarter of the values is left). LRN and the pool behind it are one step: what
  lies between is never written. LRN is not done on the way out of the convolution, as bias and activation
  are: it needs all neighbouring channels of a pixel, and a tile of the product ends among them, or holds a
  part of the sum alone. A convolution and the pool behind it are one step on a GPU where the kernel for
  both takes them, as it does small images (`engine.planning.step_fusion` says where two are one; for
  ladders, `plan(…, joined=True)`, they are wherever they can be). In tf32 and fp16, too, in fp32 as their
  kernel is, unless two steps in the precision asked for were timed to be faster: at least as precise is
  allowed.
- A small net is one launch where that was timed to be faster: `engine.planning.runs` finds the longest run of
  steps each of which alone reads what the one before gives, `kernels.net` makes one kernel of them (what lies
  between stays in shared memory; a block or a cluster computes a group of images),
  `engine.cuda.replays.one_kernel` tries a few ways of sharing the work out against the steps' own
  kernels, once a machine, and takes none whose answer differs. The plan's steps stay what they are: layers
  are judged by them, and timed by clock stamps inside the one kernel. For tf32 and fp16 it computes in fp32
  too, or its products on tensor cores in TF32, whichever was timed to be faster.
- `engine.graph.plan`: `Plan`, `Step`, `TensorSpec`. `engine.planning.planner`: `plan(graph, batch, device,
  precision, options) -> Plan`.
- Where one tensor between two steps decides how much memory a pass takes, these run for a quarter of the
  images at a time (`engine.planning.image_turns`, `Plan.turns`).
- `engine.planning.groups`: `groups(graph, batch) -> tuple[Group, ...]`: which ONNX nodes run as one step
  (nodes, op_type, inputs, output tensor, shape, parameters, flops, nbytes), the same for every backend,
  so that errors and times of two backends are compared over the same nodes. A model the engine refuses
  falls back to one node a group. LRN and its pool are one group also where a device has two steps, which
  then add up; so are a convolution and its pool where a GPU has one step for them and is among the
  devices compared (`Graph.devices`, set by `bench.measure.loaded_model`); an activation that a step does
  behind the pool stays in the group of its convolution, where the reference does it.
- `engine.planning.submodel`: `extract(graph, nodes, batch) -> Graph` (those nodes alone, their outside
  tensors as inputs), `side_by_side(graph, parts, batch)` (many such parts as one model, each fed by itself)
  and `with_outputs(graph, names) -> Graph` (further tensors as outputs).
- `engine.graph.shapes`: ONNX's own shape inference, for nodes the engine refuses. `engine.graph.memory`:
  liveness and placement.
- `engine.backend`: the protocols `Backend`, `Session`, `Queued` (a device that can be held back while
  passes are queued, so that the host's launch time is not in a time); `Options`, `OpTime`.
- `engine.cuda.calls`: the weights as they lie on the device.
- `engine.cuda.session`, `engine.cuda.stages`, `engine.cuda.stream`, `engine.cuda.runtime`: the CUDA
  session, how a launch is made ready, a session's stream with its clock and its graphs, and what else is
  used of CuPy. `engine.cuda.replays.overlap`: launches that may begin while the kernel before them ends, and
  which of a pass should; `engine.planning.early` keeps that. `engine.cuda.stream` knows, too, what of the
  device's context a time hangs on, looked at before each train and put back. `engine.machine.driver`:
  whether a driver and a GPU answer, without starting a device.
- `engine.apart`: Python kernels, and ONNX Runtime on the CPU beside them, run in processes apart
  (`child`) that hold plans, rungs and arrays, and one socket: no clock that counts, no expected answer,
  nothing that the worker says to its parent. `client.Child` is one as its parent has it, `pool` which a
  session is given (one a kind; a user's kernels have their own), `session` and `engine.cpu.rung` sessions
  on this side. Large arrays lie in memory that both map (`memory`, `arrays`: weights sealed, once for
  all), what a child answers is decoded by msgspec to known types (`words`). It runs only while it is
  asked: else it is stopped (`kernels.processes`, which also ends it with its parent, and what it started). A
  rung, and whatever has a kernel of a user's, is given one pass after the other (`timed.Given`): its process
  stops itself after each, and while it is stopped we put the inputs of the next where it reads them, and take
  the answer; a pass is timed by our clock from having the process go on to its having stopped. Sessions that
  no user wrote (ONNX Runtime, the engine with our kernels alone, rivals) stay awake and run trains by
  themselves over several `slots` (`timed.Shared`). What either takes without a kernel (`empty`) is measured
  in a process where no user's kernel ever ran, and taken off (`facts["trigger"]`). `watched`: that a kernel's
  process starts no other, does nothing while it is stopped, and changes nothing of others. `held`: a session
  whose process somebody else has ended is opened again in another. `Backend.prepare_here`: the same session
  in this process, for tests and profiles (`backends.prepared_within`).
- `engine.stirring`: before each timed pass a few values of every input change and some of each output are
  poisoned, at places and by values that follow from a secret seed and the pass's number, so that the pass
  can be rebuilt (`Stirring.inputs_of(number)`). `engine.cuda.stirring`: the same by one launch
  (`stirring.cu`), which also keeps what the pass before left where it is looked at (`engine.stirring`:
  `Witness`, `Witnessed`; the last 64 passes and the first over new inputs;
  `bench.measure.answers.timed_pass`, the one check of all). `engine.cuda.trains`: trains of stirred
  passes as CUDA graphs; what stirring takes is measured alone and taken off. The bound inputs lie there
  again after a train. A cold pass is stirred before the L2 cache is overwritten.
  `engine.cuda.trains.DeviceSession`: how all sessions on a GPU, ours and their rivals', are bound, fetched,
  timed and looked at; `engine.ort.trains.LaunchedSession`: of those, a library's that launches by itself.
- `engine.stirring.Renewable`: passes timed over inputs all of whose values are written anew, others in
  each pass, or as timed passes have them; on the CPU by `engine.apart.trains` into the slots, on a GPU by
  one launch a pass (`engine.cuda.renewing`, `renewing.cu`). `bench.measure.answers.renewed` mixes such trains
  into those that are timed.
- `engine.ort.sessions`, `engine.ort.profile`: what both ONNX Runtime backends share; its profile mapped
  back to ONNX nodes. `engine.machine.host`: cores, caches, overwriting them.
- `engine.cpu.steps`, `engine.cpu.steps`: a plan's steps on the CPU, divided among threads that take part
  after part, each with BLAS on one thread: BLAS's own threads wait for each other, which on a busy
  machine costs more than they save.
- `engine.backends`: `all_backends() -> dict[str, Backend]`, by folder and entry point; `get(name)` with
  the nearest name in its error.
- `engine.backend.Rival`: a backend that takes part only where it is named. Those of ours (PyTorch, OpenVINO,
  ONNX Runtime's other providers) have their sessions in `engine.rivals`, in processes of the Python that has
  the package (`kernels.environment`, `engine.apart.pool.Kind`); on a GPU passes, clock and stirring are
  in that process, and `engine.apart.device` rebuilds timed passes here from the seed. `engine.ort.sessions`:
  what ONNX Runtime leaves to another provider in silence is an error.
- `engine.planning.choices`: who chose what on this machine and why: one file of the user's cache for each
  case, with all that was tried for it. `planner.ladder_choice` asks it
  where `Options.tuned`, and each `Step` says what chose its rung: "named", "timed", the "ladder",
  or the "layout" (`engine.planning.layouts`: in which layout and element type tensors between steps travel,
  and which rungs were faster in them than those chosen alone).
  `choices.nearby`: how fast the rungs were at the nearest batch size, a hint of which to try first.
- `engine.ort.precision`: fp16 conversion of a Graph's proto, for ONNX Runtime.
- `engine.options`: `Configuration` (`Options.ort`), how ONNX
  Runtime may be configured; `engine.ort.fused_conv`: `fused(graph)`, Conv(+ Add) + Relu as
  com.microsoft.FusedConv; `engine.ort.tuning`: for which case a choice among them is kept. A
  backend that is another one in a measured configuration is a `Variant` (`variant_of`, `resolved`): it
  takes part only where it is asked for.
"""
