"""What the user sees. Widgets show state and emit intent, and compute nothing.

State comes from records alone, and the GUI thread only ever does a slice of anything.
`gui.shell.app.run() -> int`.

- `gui.sessions.run_state.RunState`: the run shown, its measurements, the rows derived from them (a few a
  tick, each once), and the selection (`case`, `layer`) that pages and inspector share. Whoever changes it
  calls `add`, `open` or `select`; `version` grows with every change. `overlays` are other runs, whose lines
  `charts(model)` has, too.
- `gui.shell.redraw.Redraw`: 25 times a second, while something is dirty: derive rows for 8 ms, then
  `redraw()` every visible view whose `dirty` is true. A view that draws slowly is drawn less often. Nothing
  else draws.
- `gui.pages.page.Page`: base of a page. A page is one module in `gui/pages` with `PAGE` and `ORDER`; it
  writes `build()` (its widgets, once, when first needed; heavy imports here), `refresh()` (called when
  dirty and visible; reuse items), `empty_text()` (what fills it) with `ways` (actions that do, the first of
  them its one button), and where they help `has_content()`, `select()`, `restyle()`, `actions_offered()`,
  `ahead()` (steps of getting ready while nothing goes on). `self.state` and `self.theming` are there from
  the start. `SessionPage`: one with a session of its own (ladder, timeline).
- What goes on behind the window is a state, an asker and a writer. `gui.sessions.session.Session`: a run of
  any kind: job → folder → worker → what it says, what is written, where it stands; how one begins, and how
  one that was left is gone on with. `ComparisonSession`, `LadderSession` and `ProfileSession` add what is
  special to a kind; what they show stands in `RunState`, `LadderState` and `ProfileState`.
  `gui.sessions.asker.Asker`: a question to a process of its own (what a model's file holds, which ladder
  there is, what a rung is compiled to). `gui.sessions.session.RunWriter`: a thread that syncs each
  measurement to the disk before it is shown. `gui.sessions.child.ChildProcess`: a process of the window;
  whoever starts one has it of this. `gui.sessions.worker_process.WorkerProcess`: the worker in one, driven
  by bench.run.supervisor as the headless client is; its output is taken 16 KiB at a time, for at most 8 ms
  at a stretch. `gui.sessions.export.Exporter`: orders, each a child process `main.py export …` or `main.py
  runs copy …`; the window draws nothing for paper.
- Widgets are made by one call each: `gui.base.boxes` (columns, rows, splitters, scroll areas, tabs, and how
  the user divided a page, kept by the splitters' names), `gui.widgets.controls` (buttons, actions,
  shortcuts, context menus, progress), `gui.widgets.labels` (labels, with their role), `gui.widgets.combo`
  (lists to choose from: `Combo.offer`, and the `ChoiceBar` above a page), `gui.base.letters` (fonts, and
  lines that are painted).
- `gui.widgets.table_view`: a table of bench.views that sorts, selects and copies as CSV and Markdown, on one
  item model (`TableModel`); pages say of their rows what a column cannot. `gui.widgets.board_view`: the
  scoreboard, a table whose cells have colours.
- `gui.plots.chart` (and `gui.plots`): charts of bench.views → pyqtgraph (`ChartView`; `ChartGrid` sets
  several out), with persistent items; pages use it and draw nothing themselves. Its `menu_opened` signal
  lets others add to a chart's context menu. A chart's title has bench.views.sentences.findings behind it.
- The form that makes a Job: `gui.form.job_form`, `job_fields`, `form_fields`; `rung_choices`: rungs chosen.
- `gui.pages.layers.layer_rows`: measurements → layers side by side, columns and edges;
  `gui.widgets.graph.layout` places boxes (nothing of Qt), `gui.widgets.graph.view.GraphView` draws them,
  `gui.widgets.colour_scale` colours them and draws the legend.
- The Model page (`gui.pages.model`): a `bench.questions.preview.Preview`, made by a process of its own, as
  boxes, facts and tables (`words`, without Qt). `gui.shell.model_files.ModelFiles` has every file looked at
  before it joins the form's list, and asks for what the page and the form show of one.
- The Timeline page: `gui.sessions.profile_session.ProfileSession` runs a profile's workers (a process a
  case), opens profile folders and has events read on a thread; its `state` holds them.
  `gui.sessions.timeline_lanes` makes lanes of events and `gui.pages.timeline.timeline_axis` says what of
  them is seen, both without Qt; `gui.pages.timeline.timeline_view` (`timeline_paint`, `timeline_words`)
  paints only that, what is narrower than two pixels as shades. `gui.pages.timeline.profile_details` has the
  tables, `gui.pages.timeline.parts_view` the parts and the cold start.
- The Ladder page (`gui.pages.ladder`): `gui.sessions.ladder_session.LadderSession` asks what ladder there
  is, runs it as any kind is, has rungs compiled to be read, and reruns what was saved
  (`gui.sessions.own_kernels`: which rungs that is); what was measured on one node is kept while others are
  looked at. The bar (`ladder_bar`) makes a LadderQuestion, the table (`ladder_table`) and the reader
  (`ladder_reader`: source, difference, assembly, error map) show the state; `ladder_panes` sets them out by
  the room there is: beside each other, in halves, or behind tabs. Sources are shown on
  `gui.widgets.code_view`; pygments finds the tokens, `gui.widgets.code_view` colours them in either theme.
- `gui.pages.predictions.answers`: reads `bench.results.gallery`'s files on a thread, filters and counts;
  `gui.pages.predictions.answer_grid` draws only what is seen.
- One thing is timed at a time: `Session.blockers`, which `MainWindow.join` fills, say in words why not;
  what was saved meanwhile is run afterwards.
- The worker starts with the window (`--warm`): it loads its libraries, says Hello (so the form knows the
  backends), rehearses one node so that the first case waits for no import, and waits for a job. A pause
  stops it after its pass; going on starts one with the cases left.
- `gui.shell.library.Library`: the user's folders of runs, ladders and profiles (list, open, delete, sample;
  resume, name, fill the form), read by `gui.base.background` off the GUI thread. `gui.shell.drop_target`
  says over the window what a drop will do.
- `gui.shell.actions.Actions`: menus File, Run, View, Help. A group of actions is one module in `gui/menus`
  with `ORDER` and `add_to(window, actions)`. The window offers `state`, `session`, `theming`, `settings`,
  `form`, `library`, `tell(sentence)`. `gui.menus.ladder` and `gui.menus.timeline` join the pages of these
  names to the window; `gui.menus.export` asks what is wanted of the page in front (`Page.exported`), of
  each chart by its own menu, too, and tells how it goes in the status bar.
- Links: a page with a `link` shows what is selected on another (`Page.spot`, `Page.show_spot`);
  `gui.menus.links` makes the actions, which pages set into their menus (`Page.links`). `gui.base.editor`
  opens files in the user's editor.
- Help: `gui.menus.help` has the tour, the glossary (of bench.words.glossary) and the
  sheet of shortcuts, which reads actions, QShortcuts (`setWhatsThis` says what one does) and the `KEYS` of
  widgets that read keys themselves. In `gui.widgets.labels`, `TermLabel` is a label that leads to the
  glossary if it is a word of it, `Linked` a text of ours with such links; both open `term:` links, which
  the window handles.
- `gui.shell.room.Room`: who has which room. The form folds into the toolbar's line once a run is shown, the
  inspector is there while a page has something selected that it tells of (`Page.inspects`), one button a
  page is the primary one; `gui.base.placing` fits the window to its screen. `gui.shell.docks`: what stands
  beside the pages; in a narrow window the inspector is a tab beside the form. At the foot:
  `gui.shell.progress_strip` (where the run stands), `gui.shell.machine_strip` (what the machine does);
  `gui.shell.problems`: what went wrong, a row each.
- The look: `gui.base.theme.Theming`: light and dark palettes and the style sheet of controls and surfaces;
  widgets follow its `changed`. Backends have bench.words.palette's colours in both. `gui.base.scale`: one
  grid of distances, one scale of type sizes; `gui.base.icons`: by what they mean, of QtAwesome. A widget
  says by its property `role` what it is ("finding", "caption", "primary", "badge", "link", …), and sets no
  size and no colour of its own.
- `gui.base.faults.Faults`: what a slot raises is logged (rotating file) and shown in the banner; no dialog.
  `gui.base.garbage`: Python's garbage is collected on the GUI thread alone, lest a thread that reads a file
  ends objects of Qt.
- `python -m gui.shell.screenshots --out DIR` takes pictures of the window: every page of the registry in
  both themes, with something selected (`Page.showcase`), from the real window and worker, on a screen or
  offscreen, of the sample run with its ladder and profile, which measures nothing, or of one measured then
  (`--live`). Those that the README shows lie in docs/images.
"""
