"""What is looked at around a process that runs a user's kernels: that it stops after each pass (`stops`,
`sentry`), that nothing of it goes on meanwhile (processes in `others`), and that it leaves its judge and its
rivals as they were (`settings`).
"""
