"""The tests of lazygrad: the folders mirror those of the package, and golden/ holds expected texts."""
