"""Isolated processes are forked from one that has loaded what they need (`template`, the server; `starting`,
its other end; `asked`, the questions), since loading it anew takes most of a second. Where none can be
forked, they are started plainly."""
