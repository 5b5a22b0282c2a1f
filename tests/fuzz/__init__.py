"""Fuzzing: changed models, folders and packed files, held to an error in words and to limits.

`make fuzz` (`python -m tests.fuzz --state DIR --seconds S`): `tests.fuzz.targets` (each in `of_models`,
`of_folders` or `of_packed`: changes one honest file by a seed and does all that the program does with
it), `changes` (of bytes, protobuf fields, JSON), `child` (the process, with 2 GiB and 5 s a case),
`__main__` (counts by target, all told and since the code it runs through changed; findings as files).
`--only TARGET --seed N` tries one again. The tests try kept seeds. `python -m tests.kills --count N
--state DIR`: comparisons killed and gone on with.
"""
