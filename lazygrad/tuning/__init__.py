"""The Opts of a kernel by timing them (BEAM): a child process runs candidates, the disk keeps the best."""
