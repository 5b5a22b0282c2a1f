"""A profile measured: in a process a case, with the engine and its recorders."""
