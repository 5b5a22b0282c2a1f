import cupy


def yardstick(values, counts, bins):
    """CUB's histogram."""

    def run():
        counts[...] = cupy.histogram(values, bins, range=(0, bins))[0]

    return run
