"""The window itself: application, main window, the menus' actions, docks, strips, and how it redraws."""
