"""Reports that are filled in: figures that somebody gives, held against what is measured here.

`courses/data/NAME.toml` holds what a course report published, `goals/data/NAME.toml` how fast an engine is
to be; both say what has to be measured (`presets.Need`). `needs` finds the runs that there are and takes
those that are missing; `figures` looks a figure up in them; `filled` writes the report by one template, as
HTML or Markdown. What is told of a course is `courses.page`, of goals `goals.page`. `command` is `report
course NAME` and `report goals NAME`.
"""
