"""Values that several devices or ranks hold: a graph over them becomes a graph for each."""
