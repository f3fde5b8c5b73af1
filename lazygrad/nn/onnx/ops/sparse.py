"""Counting n-grams: TfIdfVectorizer, on the host."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..table import op


@op("TfIdfVectorizer", host=("x",))
def tf_idf_vectorizer(
    x: Any,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Any,
    ngram_indexes: Any,
    pool_int64s: Any = None,
    pool_strings: Any = None,
    weights: Any = None,
) -> Any:
    """How often each n-gram of a pool occurs in a line, its words up to `max_skip_count` places apart."""
    pool = [*(pool_strings if pool_int64s is None else pool_int64s)]
    positions: dict[tuple[Any, ...], int] = {}
    starts = [*ngram_counts, len(pool)]
    number = 0
    for length, (begin, end) in enumerate(itertools.pairwise(starts), 1):
        for at in range(begin, end, length):
            positions[tuple(pool[at : at + length])] = number
            number += 1
    lines = x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x.reshape(1, -1)
    size = max(ngram_indexes) + 1
    counts = np.zeros((len(lines), size), np.float32)
    for row, line in enumerate(lines):
        words = line.tolist()
        for length in range(min_gram_length, max_gram_length + 1):
            for skip in range(1, (max_skip_count + 1 if length > 1 else 1) + 1):
                for at in range(len(words) - (length - 1) * skip):
                    found = positions.get(tuple(words[at : at + length * skip : skip]))
                    if found is not None:
                        counts[row, ngram_indexes[found]] += 1
    factor = np.ones(size, np.float32)
    if weights is not None:
        factor[list(ngram_indexes)] = weights
    result = counts if mode == "TF" else np.where(counts > 0, 1, 0) * factor
    result = counts * factor if mode == "TFIDF" else result
    return result.astype(np.float32).reshape(*x.shape[:-1], size)
