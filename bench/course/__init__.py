"""An assignment for a class, and how what was handed in is judged.

- `bench.course.assignment`: the teacher's one TOML, read; `bench.course.tasks`: its tasks as params of
  operators; `bench.course.template`: a new one, and the copy without hidden shapes that students get.
- `bench.course.submissions`: what lies in a folder, by student and task.
- `bench.course.records`: what is asked, and what came of each student's task; it is a kind of run to the
  client, the supervisor and the folder, and to nobody else.
- `bench.course.worker`, `bench.course.judging`: the process that judges one student's tasks, each by a ladder
  of few rungs (`bench.course.task_runner`); its walls are `bench.course.walls`.
- `bench.course.grading`: a whole class, over `bench.fleet`. `bench.course.marks`: scores, bands, ranks;
  `bench.course.written`: Gradescope's JSON, CSV, the ranking; `bench.course.told`: what a student reads.
"""
