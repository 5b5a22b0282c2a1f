"""A write far outside of all memory: the device faults, and its context with it."""

from tests.standin.errors import ILLEGAL, CudaError


def bind(p, inputs, output, workspace):
    def run():
        raise CudaError(ILLEGAL)

    return run
