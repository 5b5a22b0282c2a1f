"""The window itself: application, main window with its menus, docks, strips, and redrawing."""
