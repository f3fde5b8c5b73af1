"""What a change of the core is held against: an earlier commit, and other choices than the default."""
