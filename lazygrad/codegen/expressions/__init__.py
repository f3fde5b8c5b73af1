"""What all passes ask of expressions: ranges, lanes, constants, CHECKs, products of narrow numbers."""
