"""Our inference engine: Graph → passes → Plan → Session, and every backend behind one interface."""
