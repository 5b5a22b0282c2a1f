"""Kernels that are Python run in an isolated process: one that holds neither the clock, nor an expected
answer, nor what the worker says to its parent; see engine.isolated.child for what it does hold.

`client.Child` is such a process as its parent has it, `pool` which of them a session is given, `session` and
`rung` sessions as they are used on this side. A child runs only while it is asked something: between two
questions it and all that it started are stopped, where the system can do that. On Linux it is forked from a
process that has loaded what it needs, and run nothing (`forked`).
"""
