"""The package as a newcomer gets it: the wheel is built, looked at, installed into an empty environment, and
everything that a user does first is done from there.

`python -m tests.package` does all of it in a folder with a space and an umlaut, as a user who may not write
where it is installed. `--whole` adds what brings a good deal from the registry: pip and pipx, every extra,
and from one build of ONNX Runtime to the other. `python -m tests.package.release` (`make release`) leaves a
source distribution and a wheel in dist/. Nothing is uploaded anywhere.

- `building`: building, and what a distribution must and must not hold.
- `installed`: an environment with the wheel, and its user.
- `steps`: what is tried, one function each, in their order.
"""
