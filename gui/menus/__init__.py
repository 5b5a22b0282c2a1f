"""The window's menus. Each module is one group of actions, with `ORDER` and `add_to(window, actions)`."""
