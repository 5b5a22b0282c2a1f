"""Charts as data: records become definitions here, and are drawn twice, live in the window and on paper
(`bench.views.drawing`). Nothing here knows matplotlib, Qt or the engine."""
