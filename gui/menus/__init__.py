"""The window's menus, one module a group of actions: each defines `ORDER` and `add_to(window, actions)`."""
