"""A kernel that never ends: whoever waits for it waits for ever."""

import threading


def bind(p, inputs, output, workspace):
    return threading.Event().wait
