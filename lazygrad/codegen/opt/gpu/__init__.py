"""What is proposed for a grid: workgroups, blocks and warps, and the time that these take."""
