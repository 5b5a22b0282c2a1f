"""A module a language: `LANGUAGE`, which says what it is, and `compiled(asked)`, which an isolated process
calls.

`compiled` imports the language's package; importing the module does not.
"""
