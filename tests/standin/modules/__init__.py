"""What the program finds in the place of packages and libraries, put there by tests.standin.install."""
