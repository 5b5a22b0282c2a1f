"""The rehearsal: every command of the documents, and more, run on this machine as a user would run them.

`make rehearse` (`python -m tests.rehearsal`; `--list`, `--only`, `--part`, `--minutes`) walks the product
on one machine.

- `tests.rehearsal.documents` reads the commands out of README.md, CONTRIBUTING.md and docs/*.md. `reading`
  makes a Step of each: what stands for its placeholders (`fixtures`), what is made small (`small`), what is
  never run, and why. `beyond` adds what comes from the catalogue, tests.zoo, kernels.ops and gui.pages. A
  command that it does not know makes it red.
- Each step runs in a folder and with a cache of the rehearsal's own (`running`), some side by side
  (`schedule`); `checks` holds exit code, files, tracebacks, and every case of every run it left to what
  must be. `state` is kept by the hash of the tree (`content`: without docs/results, the same in a copy
  without .git), so that a cut one goes on.
- `report` writes a page with every step beside the state, and docs/results/rehearsal-<machine>.md: the
  hash, the machine, the counts and what failed. CI notes whether that page is of the tree at hand.
"""
