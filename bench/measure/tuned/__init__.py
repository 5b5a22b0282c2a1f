"""What is measured once on a machine before a case is, by a `sweep`: our fastest rungs, alone (`rungs`) and
in the layouts of a plan (`layouts`, `layout_rungs`), and the reference's best configuration (`reference`).
Which cases are the same by that (`same_configuration`), and what comes of a configuration that is wrong after
all (`doubted`). `engine.planning.choices` says what is kept of all that.
"""
