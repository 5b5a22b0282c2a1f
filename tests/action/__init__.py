"""action.yml, run as the service that it is made for would run it, as far as that can be had without it.

`python -m tests.action` runs its steps for pull requests with an equal, a slower and a wrong kernel.
"""
