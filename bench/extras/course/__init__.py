"""An assignment for a class, and how what was handed in is judged.

- `assignment`: the teacher's one TOML, read; `exercises`: its exercises as params of operators; `template`:
  a new one (its problems: problems.toml), and the copy without hidden shapes that students get.
- `files`: the files of one hand-in, read within limits; `people`: whose it is, by platforms' names and the
  roster; `submissions`: what lies in a folder, by student and exercise.
- `records`: what is asked, and what came of each student's exercise; it is a kind of run to the client, the
  supervisor and the folder, and to nobody else.
- `worker`, `judging`: the process that judges one student's exercises, each by a ladder of few rungs
  (`exercise_runner`); its walls are `walls`.
- `grading`: a whole class, over `bench.extras.fleet`, and what of it is to be judged again. `marks`:
  scores, bands, ranks; `alike`: kernels that share their tokens.
- `written`: Gradescope's JSON, CSV, the ranking; `pages`: HTML for students and the teacher; `told`: what
  is said of a mark anywhere; `showing`: all that is known of one student.
- `autograder`: the zip for Gradescope, with the scripts of `gradescope/`.
"""
