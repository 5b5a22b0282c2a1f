"""Trained weights from elsewhere → checked ONNX files in the user's catalogue.

`importing.import_file` finds which of `formats/` (one module a format) reads a file; `parts` are weights by
shape, checked against the net; `torchvision_nets` and models.builders are nets that files name by
their weights, `caffe_text` and `caffe_wire` read a net and its weights as Caffe has them; `unpickler` reads
pickles without running them (`pickled_arrays`). What comes out is kept by models.imported.
"""
