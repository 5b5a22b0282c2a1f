"""What is looked at around a process that runs a user's kernels: that nothing of it goes on while it is
stopped (`sentry`, and the processes in `others`), and that it leaves its judge and its rivals as they were
(`settings`).
"""
