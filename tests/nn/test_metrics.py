"""`nn.metrics` beside scikit-learn, by hand where it has no such thing, in batches and under capture."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad import JitError, Tensor, TinyJit, nn
from lazygrad.nn import metrics

rng = np.random.default_rng(0)


def batches(count=4, size=25, classes=5):
    """(scores, classes) of several batches."""
    return [
        (rng.standard_normal((size, classes)).astype(np.float32), rng.integers(0, classes, size))
        for _ in range(count)
    ]


def joined(data):
    return np.concatenate([scores for scores, _ in data]), np.concatenate([target for _, target in data])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_accuracy(k):
    from sklearn.metrics import top_k_accuracy_score

    data, accuracy = batches(), metrics.Accuracy(top_k=k)
    for scores, target in data:
        accuracy.update(Tensor(scores), Tensor(target))
    scores, target = joined(data)
    assert accuracy.compute() == pytest.approx(top_k_accuracy_score(target, scores, k=k))
    accuracy.reset()
    assert math.isnan(accuracy.compute())


def test_accuracy_of_classes_of_tokens_and_of_equal_scores():
    accuracy = metrics.Accuracy(ignore_index=-100)
    accuracy.update(Tensor([[1, 2, 3], [4, 5, 6]]), Tensor([[1, 0, -100], [4, -100, -100]]))
    assert accuracy.compute() == pytest.approx(2 / 3)
    ties = metrics.Accuracy(top_k=2)
    ties.update(Tensor.zeros(4, 4), Tensor([0, 1, 2, 3]))
    assert ties.compute() == 0.5
    with pytest.raises(ValueError, match=r"scores of shape \(3,\) and classes of shape \(4,\)"):
        accuracy.update(Tensor([1.0, 2.0, 3.0]), Tensor([1, 2, 3, 4]))


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", None])
def test_precision_recall_f1(average):
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    data, matrix = batches(), metrics.ConfusionMatrix(6)  # one class that does not occur
    for scores, target in data:
        matrix.update(Tensor(scores), Tensor(target))
    scores, target = joined(data)
    labels = list(range(6))
    assert matrix.compute() == confusion_matrix(target, scores.argmax(1), labels=labels).tolist()
    expected = precision_recall_fscore_support(
        target, scores.argmax(1), labels=labels, average=average, zero_division=0
    )
    ours = matrix.precision(average), matrix.recall(average), matrix.f1(average)
    for own, theirs in zip(ours, expected[:3], strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-12)
    assert matrix.accuracy() == (scores.argmax(1) == target).mean()
    with pytest.raises(ValueError, match="average must be 'macro'"):
        matrix.f1("mean")


SCORES = [0.2, 0.9, 0.4, 0.6, 0.5]
TRUE = [0, 1, 1, 0, 1]


@pytest.mark.parametrize("shape", [(5,), (5, 1)])
@pytest.mark.parametrize("kind", [Tensor, np.array, list])
def test_scores_of_two_classes(kind, shape):
    scores = Tensor(SCORES).reshape(shape).numpy()
    scores = scores.tolist() if kind is list else kind(scores)
    accuracy, matrix = metrics.Accuracy(), metrics.ConfusionMatrix(2)
    low, logits = metrics.Accuracy(threshold=0.3), metrics.ConfusionMatrix(2, threshold=0.0)
    for metric in (accuracy, matrix, low, logits):
        metric.update(scores, kind(TRUE))
    assert (accuracy.compute(), low.compute()) == (2 / 5, 4 / 5)
    assert (matrix.compute(), logits.compute()) == ([[1, 1], [2, 1]], [[0, 2], [0, 3]])


def test_classes_may_be_floats_or_bools():
    accuracy, matrix = metrics.Accuracy(), metrics.ConfusionMatrix(2)
    for target in (np.array(TRUE, np.float32), np.array(TRUE, bool)):
        accuracy.update(SCORES, target)
        matrix.update(SCORES, target)
        accuracy.update(np.array([0, 1, 0, 1, 0]), target)
    assert accuracy.compute() == 2 / 5
    assert matrix.compute() == [[2, 2], [4, 2]]


def test_scores_that_are_not_of_two_classes():
    with pytest.raises(ValueError, match=r"scores of shape \(2,\) are of two classes, not of 3"):
        metrics.ConfusionMatrix(3).update([0.5, 0.1], [0, 2])
    with pytest.raises(ValueError, match="top_k=2 needs scores of several classes"):
        metrics.Accuracy(top_k=2).update([0.5, 0.1], [0, 1])


def test_area_under_the_curve(tmp_path):
    from sklearn.metrics import roc_auc_score

    auc, scores, target = metrics.AUC(), rng.integers(0, 20, 90) / 20, rng.integers(0, 2, 90)
    for begin in range(0, 90, 30):
        auc.update(Tensor(scores[begin : begin + 30]), target[begin : begin + 30])
    assert auc.compute() == pytest.approx(roc_auc_score(target, scores), rel=1e-12)
    run = nn.TrainingState(auc=auc)
    run.save(tmp_path / "run.safetensors")
    auc.reset()
    assert math.isnan(auc.compute())
    run.resume(tmp_path / "run.safetensors")
    assert auc.compute() == pytest.approx(roc_auc_score(target, scores), rel=1e-12)
    auc.update([math.nan], [1])
    assert math.isnan(auc.compute())


@pytest.mark.parametrize(
    ("scores", "target", "message"),
    [
        ([[0.1, 0.9]], [1], r"each score has one class; of two classes, give .* scores\[:, 1\]"),
        ([0.1, 0.9], [1, 2], "AUC is of the classes 0 and 1, not of 2"),
    ],
)
def test_what_has_no_area(scores, target, message):
    with pytest.raises(ValueError, match=message):
        metrics.AUC().update(scores, target)


def test_an_area_needs_all_scores():
    jitted = TinyJit(lambda x: metrics.AUC().update(x + 1, [0, 1]))
    jitted(Tensor([1.0, 2.0]))
    with pytest.raises(JitError, match="reads a tensor's value"):
        jitted(Tensor([1.0, 2.0]))


def test_regression():
    from sklearn import metrics as theirs

    target = rng.normal(100, 2, 240).astype(np.float32)
    predicted = target + rng.normal(0, 1, 240).astype(np.float32)
    ours = metrics.RMSE(), metrics.MAE(), metrics.R2()

    @TinyJit
    def step(x, y):
        for metric in ours:
            metric.update(x, y)
        return x.sum()

    for begin in range(0, 240, 60):
        step(
            Tensor(predicted[begin : begin + 60, None]).realize(),
            Tensor(target[begin : begin + 60]).realize(),
        )
    wanted = [
        theirs.root_mean_squared_error(target, predicted),
        theirs.mean_absolute_error(target, predicted),
        theirs.r2_score(target, predicted),
    ]
    assert [metric.compute() for metric in ours] == pytest.approx(wanted, rel=1e-5)
    for metric in ours:
        metric.reset()
        assert math.isnan(metric.compute())
        metric.update([1.0, 2.0], np.array([1.0, 2.0]))
    assert [metric.compute() for metric in ours] == [0.0, 0.0, 1.0]


def test_regression_of_other_shapes():
    for metric in (metrics.RMSE(), metrics.MAE(), metrics.R2()):
        with pytest.raises(ValueError, match=r"predictions of shape \(2,\) for numbers of shape \(2, 1\)"):
            metric.update([1.0, 2.0], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="R2 is of one number for each sample"):
        metrics.R2().update(np.zeros((3, 2)), np.zeros((3, 2)))
    constant = metrics.R2()
    constant.update([1.0, 3.0], [2.0, 2.0])
    assert constant.compute() == 0.0


def test_means_of_lists_and_arrays():
    mean, running, perplexity = metrics.Mean(), metrics.RunningMean(), metrics.Perplexity()
    mean.update([1.0, 3.0], np.array([1.0, 3.0]))
    running.update(np.array([2, 4]))
    perplexity.update(np.zeros((1, 4)), [2])
    assert (mean.compute(), running.compute()) == (2.5, 3.0)
    assert perplexity.compute() == pytest.approx(4.0)


def test_mean_does_not_drift_over_many_updates():
    mean = metrics.Mean()

    @TinyJit
    def add(x):
        mean.update(x)
        return x + 1

    x = Tensor([0.1]).realize()
    for _ in range(3000):
        add(x)
    assert mean.compute() == pytest.approx(np.float32(0.1), rel=3e-7)


def test_mean_with_weights_and_a_mean_that_forgets():
    mean, running = metrics.Mean(), metrics.RunningMean(decay=0.75)
    numbers, weights = [3.0, 5.0, 10.0, 0.5], [1.0, 2.0, 0.0, 4.0]
    for number, weight in zip(numbers, weights, strict=True):
        mean.update(Tensor(number), weight)
        running.update(Tensor([number, number]))
    assert mean.compute() == pytest.approx(np.average(numbers, weights=weights))
    assert running.compute() == pytest.approx(np.average(numbers, weights=0.75 ** np.arange(3, -1, -1)))
    assert math.isnan(metrics.Mean().compute())


def test_perplexity():
    from sklearn.metrics import log_loss

    data, perplexity = batches(), metrics.Perplexity()
    for scores, target in data:
        perplexity.update(Tensor(scores), Tensor(target))
    perplexity.update(Tensor(data[0][0]), Tensor.full((25,), -100))
    scores, target = joined(data)
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert perplexity.compute() == pytest.approx(math.exp(log_loss(target, probabilities)), rel=1e-5)
    perplexity.reset()
    assert math.isnan(perplexity.compute())


def test_a_metric_is_part_of_a_jitted_step_and_of_a_run(tmp_path):
    accuracy, plain = metrics.Accuracy(), metrics.Accuracy()

    @TinyJit
    def step(scores, target):
        accuracy.update(scores, target)
        return scores.sum()

    data = batches(count=6)
    for scores, target in data:
        step(Tensor(scores).realize(), Tensor(target).realize())
        plain.update(Tensor(scores), Tensor(target))
    assert accuracy.compute() == plain.compute()
    run = nn.TrainingState(accuracy=accuracy, words=(words := metrics.WordErrorRate()))
    words.update("a", "a b")
    run.save(tmp_path / "run.safetensors")
    accuracy.reset()
    words.reset()
    run.resume(tmp_path / "run.safetensors")
    assert (accuracy.compute(), words.compute()) == (plain.compute(), 0.5)


# *** texts


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("flaw", "lawn", 2), ("intention", "execution", 5)],
)
def test_edit_distance(first, second, edits):
    assert metrics.edit_distance(first, second) == edits
    assert metrics.edit_distance(list(second), list(first)) == edits


def test_edit_distance_is_a_distance():
    texts = ["".join(rng.choice(list("ab"), rng.integers(0, 7))) for _ in range(12)]
    distance = metrics.edit_distance
    for a in texts:
        for b in texts:
            assert distance(a, b) == distance(b, a) >= abs(len(a) - len(b))
            assert (distance(a, b) == 0) == (a == b)
            assert all(distance(a, c) <= distance(a, b) + distance(b, c) for c in texts)


def test_error_rates_count_all_texts_together():
    words, characters = metrics.WordErrorRate(), metrics.CharacterErrorRate()
    for rate in (words, characters):
        rate.update(["one two", "three"], ["one too", "three four"])
    assert words.compute() == 2 / 4
    assert characters.compute() == (1 + 5) / (7 + 10)
    with pytest.raises(ValueError, match="2 texts and 1 references"):
        words.update(["a", "b"], ["a"])


def test_bleu_counts_runs_no_more_often_than_a_reference_has_them():
    """The example of the paper: "the" seven times."""
    bleu = metrics.BLEU(n=1)
    bleu.update("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"])
    assert bleu.compute() == pytest.approx(2 / 7)


def test_bleu_of_several_texts():
    bleu = metrics.BLEU()
    bleu.update("the quick brown fox jumps", "the quick brown fox jumps over")
    bleu.update("a b c d", ["a b c d"])
    shared, possible, short = [9, 7, 5, 3], [9, 7, 5, 3], 1 - 10 / 9
    expected = math.exp(short + sum(math.log(a / b) for a, b in zip(shared, possible, strict=True)) / 4)
    assert bleu.compute() == pytest.approx(expected)
    nothing = metrics.BLEU()
    nothing.update("a b c", "d e f")
    assert nothing.compute() == 0.0
