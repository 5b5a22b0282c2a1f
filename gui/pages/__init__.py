"""The window's pages, one module each: PAGE is a gui.pages.page.Page, ORDER its place among the tabs."""
