"""What is measured once on a machine before a case is: our fastest rungs, alone (`rungs`) and in the layouts
of a plan (`layouts`, `laid_rungs`), the reference's best configuration; which cases are one and the same by
that (`twins`); and what comes of a configuration that is wrong after all (`doubted`).
"""
