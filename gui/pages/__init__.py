"""The window's pages, one module each. PAGE is a subclass of gui.pages.page.Page, ORDER its place among
the tabs."""
