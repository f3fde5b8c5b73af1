"""What networks are made of: convolutions, pooling, attention, normalization, losses."""
