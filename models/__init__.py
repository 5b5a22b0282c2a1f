"""Models and data: the catalogue, model builders, data sets, and the trained weights that ship.

- `names`: names and titles only; imports nothing heavy. `catalogue`: `Entry`, `entries()`, `get(name)`,
  `path(name, progress=None)`, which builds the file into the user's cache at first use (`builders`) and
  checks it by its SHA-256. `train`: trains the weights that ship, in an environment of its own.
- `imported`: models that the user made from weights of others; `names` lists them after the catalogue's own.
- `datasets`: `load(spec, images=None, progress=None) -> Dataset` (name, images uint8 (N, H, W) or (N, H, W,
  C), labels, classes), downloaded (`download`) or from a folder of the user; `pictures` decodes image files
  when they are read.
- `labels`: the order of a model's classes. `preparation`: what is done to an image, as data; `preprocessing`
  does it: `preprocess(images, spec, input_shape)` gives float32 (N, C, H, W), or what the input takes.
"""
