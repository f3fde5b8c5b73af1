"""What is said of what runs: rows and forms of kernels (DEBUG), the roofline, wrong numbers (CHECK)."""
