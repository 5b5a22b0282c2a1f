"""Cases of any kind of run on several devices: of this machine, or of a cluster's.

- `work`: a piece of work for one device (cases of one job, the files it needs), and `perform`,
  which does it where it is: the kind's worker, watched as everywhere, in a folder for the time being.
- `device_lock`: one measurement at a time a device, whoever measures.
- `executor`: who hands work out: processes of this machine (`local`), or Ray (`on_ray`, with the
  extra `cluster`). `devices`: what there is.
- `spread`: a run's missing cases as pieces of work, and what comes back into its one folder.
- `parts`: a data set in parts, for accuracy; `command` is the command.
"""
