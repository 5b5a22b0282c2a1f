"""Where the time of a model goes: one session watched from cold start to close, and what is made of it."""
