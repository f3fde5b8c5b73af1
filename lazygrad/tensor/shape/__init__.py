"""Operations that move, repeat, pad, join and split elements."""
