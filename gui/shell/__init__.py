"""The window itself: application, main window, menus' actions, theme, strips and what goes wrong."""
