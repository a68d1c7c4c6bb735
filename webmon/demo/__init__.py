"""A cluster that is not there: real SSH servers on loopback, for `webmon demo` and for the tests."""
