def yardstick(keys, y):
    """Thrust's sort, which sorts whole numbers by their digits (CUB's radix sort)."""

    def run():
        y[...] = keys
        y.sort()

    return run
