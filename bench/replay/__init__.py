"""Every kernel of a fixed corpus, written down for five targets, so that a change can be held against it."""
