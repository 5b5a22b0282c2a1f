"""The tests: folder by folder as the source lies.

`make test` has one process more than there are cores; those that are idle take tests from the busy, and the
longest (the stand-in's) begin first, so that none is left alone at the end. Where Python is told to write no
bytecode, `tests/conftest.py` has all processes keep it in `.pytest_cache`: starting processes is most of
what the tests do. In a new clone `tests/ahead.py` writes it before the first test.
`tests/kernels/test_cuda_compile.py` compiles every rung for the architectures that a text asks for, and for
those between them by turns. `tests/test_documents.py` follows the links of the documents, and what they name.
`python -m tests.figures` is no test: it measures long reports on this machine (docs/results/README.md).
"""
