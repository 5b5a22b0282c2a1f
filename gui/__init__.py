"""What the user sees. Widgets show state and report what the user wants; they compute nothing.

The state comes from records alone. The GUI thread only does short pieces of work.
`gui.shell.app.run() -> int`.

- `gui.sessions.comparison_session.RunState`: the run shown, its measurements, the rows derived from them (a
  few at a time, each once), and the selection (`case`, `layer`) that pages and inspector share. Whoever
  changes it calls `add`, `open` or `select`; `version` grows with every change. `overlays` are other runs,
  whose lines `charts(model)` contains, too.
- `gui.shell.main_window.Redraw`: 25 times a second, while something is out of date, it derives rows for 8 ms
  and then calls `redraw()` of each visible view whose `dirty` is true. A view that draws slowly is drawn less
  often. Nothing else draws.
- `gui.pages.page.Page`: base of a page. A page is one module in `gui/pages` with `PAGE` and `ORDER`. It
  writes `build()` (its widgets, once; heavy imports here), `refresh()` (called when it is dirty and visible;
  items are kept), `empty_text()` (what fills it) with `ways` (actions that do, the first one is its button),
  and where they help `has_content()`, `select()`, `restyle()`, `actions_offered()`, `ahead()` (steps of
  preparation). `self.state` and `self.theming` are there from the start. `SessionPage`: a page with a session
  of its own (ladder, timeline).
- What runs behind the window is a state, an asker and a writer. `gui.sessions.session.Session`: a run of any
  kind, from the job to the folder, the worker, its messages, what is written and where the run stands; how it
  begins, and how an interrupted one is continued. `comparison_session`, `ladder_session` and
  `profile_session` hold the session and the state of each kind. `gui.sessions.session.RunWriter`: a thread
  that syncs each measurement to the disk before it is shown.
- `gui.sessions.processes`: `ChildProcess`, one process of the window; `Asker`, a question to a process (what
  a model's file holds, which ladder there is, what a rung is compiled to); `WorkerProcess`, the worker,
  driven by bench.run.supervisor as on the command line: its output is read in pieces of 16 KiB, for at most 8
  ms at a time; `Exporter`, exports, each by a child process `main.py export …` or `main.py runs copy …`. The
  window draws nothing for paper.
- Widgets are made by one call each: `gui.base.boxes` (columns, rows, splitters, scroll areas, tabs; sizes
  that the user chose are stored by the splitters' names) and `gui.widgets.controls` (labels with their role,
  buttons, actions, shortcuts, context menus, progress, lists to choose from: `Combo.offer`, and the
  `ChoiceBar` above a page).
- `gui.widgets.table_view`: a table of bench.views that sorts, selects and copies as CSV and Markdown, on one
  item model (`TableModel`); `gui.widgets.columns` hides, moves and pins its columns.
  `gui.widgets.question` asks, with verbs on its buttons. `gui.widgets.cards`: the three answers that a page
  opens with (bench.views.cards, `layer_cards`, `ladder_cards`); between those of a model its scoreboard
  (`gui.widgets.board_view`).
- `gui.plots.chart` (with `bars`, `lines` and `base`): charts of bench.views as pyqtgraph plots
  (`ChartView`; `ChartGrid` places several). Items stay; pages draw nothing themselves. Its `menu_opened`
  signal lets others add to a chart's context menu. A chart's title leads to bench.views.sentences.findings.
- The form that makes a Job: `gui.form.job_form`; its fields: `gui.form.fields`.
- `gui.pages.layers`: measurements as layers side by side. `gui.widgets.graph` places and draws boxes,
  `gui.widgets.colour_scale` colours them and draws the legend.
- The Model page (`gui.pages.model`): a `bench.questions.preview.Preview`, made by a process of its own, as
  boxes, facts and tables. `gui.shell.model_files.ModelFiles` has every file looked at
  before it joins the form's list, and asks for what the page and the form show of one.
- The Timeline page: `gui.sessions.profile_session` runs a profile's workers (one process for each case),
  opens folders, and has events read in a thread, as tracks. `gui.pages.timeline.timeline_view` paints what is
  visible of them; events narrower than two pixels are painted as shades. `gui.pages.timeline.profile_details`
  has the tables, the parts and the cold start.
- The Ladder page (`gui.pages.ladder`): `gui.sessions.ladder_session.LadderSession` asks what ladder there is,
  runs it, has rungs compiled to be read, and runs saved kernels again (`OwnKernels`). Measurements of a node
  are kept while others are shown. The page's bar makes a LadderQuestion. `ladder_reader` shows the state: the
  table of rungs and what one rung is (its source in `rung_source`, its errors in `error_map`). `LadderPanes`
  places them by the room there is: beside each other, in halves, or behind tabs. Sources are shown by
  `gui.widgets.code_view`.
- `gui.sessions.own_saves` keeps the versions of the user's rungs (bench.results.saves);
  `gui.pages.ladder.history` shows them.
- `gui.pages.predictions` reads `bench.results.gallery`'s files in a thread, filters and counts, and draws
  only what is visible.
- One thing is timed at a time: `Session.blockers`, which `MainWindow.join` fills, say in words why not. What
  was saved meanwhile runs afterwards.
- The worker starts with the window (`--warm`): it loads its libraries, says Hello (so the form knows the
  backends), rehearses one node so that the first case waits for no import, and waits for a job. A pause stops
  it after its pass; continuing starts one with the remaining cases.
- `gui.shell.library.Library`: the user's folders of runs, ladders and profiles, read by `gui.base.background`
  in threads.
- `gui.shell.main_window.Actions`: menus File, Run, View, Help. A group of actions is one module in
  `gui/menus` with `ORDER` and `add_to(window, actions)`. The window offers `state`, `session`, `theming`,
  `settings`, `form`, `library`, `tell(sentence)`. `gui.menus.ladder` and `gui.menus.timeline` connect the
  pages of these names; `gui.menus.export` asks what is wanted of the page in front (`Page.exported`) and
  shows the progress in the status bar.
- Links: a page with a `link` shows what is selected on another (`Page.spot`, `Page.show_spot`);
  `gui.menus.links` makes the actions, which pages put into their menus (`Page.links`). `gui.menus.editor`
  opens files in the user's editor.
- `gui.menus.palette` finds anything by a few letters; a page adds what it has by `Page.findable`.
  `gui.menus.preferences` writes what command and window share into the user's configuration file
  (bench.run.settings), and keeps theme and size of text.
- Help: `gui.menus.help` has the tour, the glossary (of bench.words.glossary) and the list of shortcuts, which
  reads actions, QShortcuts (`setWhatsThis` says what one does) and the `KEYS` of widgets that read keys
  themselves. `TermLabel` and `Linked` (gui.widgets.controls) lead to the glossary by `term:` links, which the
  window handles.
- `gui.shell.room.Room` decides which parts of the window are visible. The form folds into the toolbar's line
  once a run is shown; the inspector is visible while a page has something selected that it describes
  (`Page.inspects`); one button is the primary one. `gui.shell.docks`: the docks, the inspector and the
  problems. `gui.shell.notices`: messages, over the pages. `gui.shell.strips`: progress, and readings of the
  machine. `gui.shell.start`: recent runs and models, on the first page while it is empty.
- The look: `gui.base.theme`: light and dark palettes, the style sheet, one grid of distances, one scale of
  type sizes, icons; `scaled(pixels)` for rows, names and icons that grow with the text. Backends have
  bench.words.palette's colours in all themes. A widget says by its property `role` what it is
  ("finding", "caption", "primary", "doubts", "link", …), and sets no size and no colour of its own.
- `gui.base.faults.Faults`: what a slot raises is logged (rotating file) and shown in a notice; no dialog.
  `gui.shell.app.Collector`: Python's garbage is collected in the GUI thread alone, so that no thread that
  reads a file deletes objects of Qt.
- `python -m tests.gui.screenshots --out DIR` takes pictures of the window: every page in both themes, with
  something selected (`Page.showcase`), from the real window and worker, on a screen or offscreen. They show
  the sample run with its ladder and profile, which measures nothing, or one that is measured then (`--live`).
  `--matrix` takes them in each size, theme and size of text that a release is looked at in.
  Those that the README shows lie in docs/images.
"""
