"""The rehearsal: every command of the documents, and more, run on this machine as a user would run them."""
