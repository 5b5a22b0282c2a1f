"""Reports in Markdown and HTML: one set of templates (`templates`), and what each view fills them with."""
