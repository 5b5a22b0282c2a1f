"""What is measured once on a machine before a case is: our fastest rungs, the reference's best
configuration; and which cases are one and the same by that (`twins`).
"""
