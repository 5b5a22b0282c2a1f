"""One page of speed, of several sittings on several machines: how fast, against what, how sure, and where a
rival is ahead.

`sitting` is what is kept of a set of goals that was measured on one processor, a small file. `lines` says
which figures of several sittings are the newest, `page` tells them.
"""
