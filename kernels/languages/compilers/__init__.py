"""A module a language: `LANGUAGE`, which says what it is, and `compiled(asked)`, which a process apart calls.

`compiled` imports the language's package; importing the module does not.
"""
