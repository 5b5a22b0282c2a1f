"""Well-known nets as exporters write them: which of them the engine runs, how right and how fast.

- `nets` lists the nets and the exporters of each. `python -m tests.zoo.export DIR` writes each as an ONNX
  file without weights, in an environment of the `train` extra (`exporters`, one module a library).
- `drawn`: such a file says of each of its weights about what and how far its values are spread; `filled`
  draws them, the same on every machine. `scaling` finds how far, so that activations stay near 1.
- `graphs` holds five that ship (`shipped`), which CI and the rehearsal run; `python -m tests.zoo fill` makes
  a file of one.
- `python -m tests.zoo measure DIR` compares the files of a folder on this machine (`measuring`) and keeps
  what came of it in docs/results (`kept`); `python -m tests.zoo write` writes docs/nets.md from all that is
  kept (`page`).
"""
