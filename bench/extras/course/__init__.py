"""An assignment for a class, and how what was handed in is judged.

- `assignment`: the teacher's one TOML, read; `tasks`: its tasks as params of
  operators; `template`: a new one, and the copy without hidden shapes that students get.
- `submissions`: what lies in a folder, by student and task.
- `records`: what is asked, and what came of each student's task; it is a kind of run to the
  client, the supervisor and the folder, and to nobody else.
- `worker`, `judging`: the process that judges one student's tasks, each by a ladder
  of few rungs (`task_runner`); its walls are `walls`.
- `grading`: a whole class, over `bench.extras.fleet`. `marks`: scores, bands, ranks;
  `written`: Gradescope's JSON, CSV, the ranking; `told`: what a student reads.
"""
