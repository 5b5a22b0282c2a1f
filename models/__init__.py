"""Models and data: the catalogue, model builders, data sets, and the trained weights that ship.

- `models.names`: names and titles alone (imports nothing heavy); `models.catalogue`: `Entry`,
  `entries()`, `get(name)`, `path(name, progress=None) -> Path` (builds into the user's cache at first
  use, by `models.builders`, and holds the file to the SHA-256 noted beside it). `kernels.cache`: the cache
  folder. `models.train` trains the weights that ship, in an environment of its own.
- `models.imported`: models that the user made of weights from elsewhere; `models.names` lists them behind the
  catalogue's own.
- `models.datasets`: `load(spec, images=None, progress=None) -> Dataset` (name, images uint8 (N, H, W) or
  (N, H, W, C), labels, classes), by `models.download` or from a folder of the user;
  `models.pictures` decodes image files when they are asked for. `models.labels`: the order of a model's
  classes. `models.preparation`: what is done to an image, as data; `models.preprocessing` does it:
  `preprocess(images, spec, input_shape) -> float32 (N, C, H, W)`, or as the input has it.
"""
