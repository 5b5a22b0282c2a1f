"""A ladder measured: in the worker, with the engine."""
