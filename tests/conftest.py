"""Settings of the whole suite: drawn examples are the same in every run, so that a red run means a change.

HYPOTHESIS_PROFILE=explore draws anew each time and longer, to look for what nobody thought of.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell that starts the tests in the background has them ignore Ctrl-C, and their processes with them: those
# that are about Ctrl-C would then wait for one that never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
