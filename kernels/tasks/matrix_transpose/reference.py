def reference(x):
    return x.T
