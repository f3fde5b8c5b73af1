"""What all passes ask of expressions: their ranges, lanes, constants and CHECKs."""
