"""A data set's images on their way into a model, inputs beside them, and what the model answers to them."""
