"""What is proposed for a processor: tiles, blocks and lanes of contractions, plans of the others."""
