"""What a change of the core is held against: the working tree beside an earlier commit, and each choice beside others."""
