"""What an Opt may do: each action, what it needs of the loops, and how it changes them."""
