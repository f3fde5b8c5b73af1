"""The engine: rows share steps, join and leave at any of them; nobody waits for who is slow or gone."""

from __future__ import annotations

import threading

import pytest

from lazygrad.serving.engine import End, Engine, Failed, Row, Ticket, Token
from lazygrad.serving.errors import ApiError
from tests.helpers import PATIENCE
from tests.serving.toy import Toy


@pytest.fixture
def toy():
    return Toy()


@pytest.fixture
def engine(toy):
    engine = Engine(toy.batch, slots=2, waiting=2, unread=8)
    engine.start()
    yield engine
    engine.stop()
    toy.allow()
    engine.wait()


class Client:
    """Asks, and collects until the end."""

    def __init__(self, engine: Engine, *prompts: str, max_tokens: int = 5, client: str = "") -> None:
        self.news = threading.Event()
        rows = [Row(prompt.encode(), None, max_tokens) for prompt in prompts]
        self.ticket: Ticket = engine.submit(rows, self.news.set, client)

    def all(self) -> list[Token | End | Failed]:
        found: list[Token | End | Failed] = []
        while not (self.ticket.over and found and not isinstance(found[-1], Token)):
            assert self.news.wait(PATIENCE)
            self.news.clear()
            found += self.ticket.take()
        return found

    def text(self, row: int = 0) -> str:
        return "".join(each.piece for each in self.all() if isinstance(each, Token) and each.row == row)


def test_an_answer_comes_token_by_token_and_ends(engine):
    assert Client(engine, "ab").all() == [Token(0, 1, "A"), Token(0, 1, "B"), Token(0, 0, ""), End(0, "stop")]
    assert Client(engine, "abcdefg", max_tokens=1).all() == [Token(0, 1, "A"), End(0, "length")]


def test_rows_of_one_request_and_of_two_share_steps(engine, toy):
    toy.hold()
    first = Client(engine, "abc")
    toy.until(lambda: len(toy.added) == 1)
    second = Client(engine, "xyz")
    toy.allow(1)
    toy.until(lambda: len(toy.added) == 2)  # it joined behind the first step
    toy.allow()
    assert first.text() == "ABC"
    assert second.text() == "XYZ"
    assert toy.steps[0] == {0}
    assert toy.steps[1] == {0, 1}
    toy.steps.clear()
    both = Client(engine, "abc", "xyz").all()
    assert [each for each in both if isinstance(each, End)] == [End(0, "stop"), End(1, "stop")]
    assert {2, 3} in toy.steps


def test_a_request_that_leaves_gives_its_place_back(engine, toy):
    toy.hold()
    leaving, staying = Client(engine, "forever", max_tokens=900), Client(engine, "forever", max_tokens=900)
    toy.until(lambda: len(toy.running) == 2)
    waiting = Client(engine, "abc")
    engine.cancel(leaving.ticket)
    toy.allow(2)
    toy.until(lambda: toy.cancelled and len(toy.added) == 3)
    assert toy.running == {1, 2}
    engine.cancel(staying.ticket)
    toy.allow()
    assert waiting.text() == "ABC"


def test_one_that_waits_can_leave_too(engine, toy):
    toy.hold()
    running = Client(engine, "abc", "xyz")
    toy.until(lambda: len(toy.running) == 2)
    gone, waiting = Client(engine, "gone"), Client(engine, "next")
    engine.cancel(gone.ticket)
    toy.allow()
    assert waiting.text() == "NEXT"
    assert running.ticket.over
    assert [each["text"] for each in toy.added] == ["abc", "xyz", "next"]


def test_too_many_are_refused_and_told_when_to_come_back(engine, toy):
    toy.hold()
    running = Client(engine, "abc", "xyz")
    toy.until(lambda: len(toy.running) == 2)
    waiting = Client(engine, "one", "two")
    with pytest.raises(
        ApiError, match="2 answers are being computed and 2 wait, of at most 2 and 2"
    ) as refused:
        Client(engine, "three")
    assert refused.value.status == 429
    assert int(refused.value.headers["retry-after"]) >= 1
    toy.allow()
    assert running.text(1) == "XYZ"
    assert waiting.text(1) == "TWO"


def test_the_client_that_has_fewer_rows_is_next(toy):
    engine = Engine(toy.batch, slots=2, waiting=10)
    toy.hold()
    engine.start()
    greedy = Client(engine, "forever 1", "ab", "forever 3", client="greedy", max_tokens=6)
    toy.until(lambda: len(toy.running) == 2)
    modest = Client(engine, "abc", client="modest")
    toy.allow()
    assert modest.text() == "ABC"
    greedy.all()
    assert [each["text"] for each in toy.added] == ["forever 1", "ab", "abc", "forever 3"]
    engine.stop()
    engine.wait()


def test_a_client_that_does_not_read_is_dropped_and_the_other_gets_everything(engine, toy):
    slow, quick = Client(engine, "forever", max_tokens=900), Client(engine, "abcdefg", max_tokens=20)
    assert quick.text() == "ABCDEFG"
    toy.until(lambda: toy.cancelled)
    *tokens, failed = slow.all()
    assert len(tokens) == 8
    assert slow.ticket.dropped
    assert failed.error.code == "client_too_slow"


def test_a_row_that_the_model_refuses_is_the_clients_fault(engine):
    [failed] = Client(engine, "badly").all()
    assert failed.error.status == 400
    assert failed.error.message == "the prompt is bad"
    assert Client(engine, "ab").text() == "AB"


def test_a_step_that_fails_loses_its_answers_and_nothing_else(engine, toy, capsys):
    toy.fault = RuntimeError("no memory")
    *_, failed = Client(engine, "ab", "cd").all()
    assert failed.error.status == 500
    assert "no memory" in failed.error.message
    assert "RuntimeError: no memory" in capsys.readouterr().err
    assert Client(engine, "ab").text() == "AB"
    assert toy.batches == 2


@pytest.mark.parametrize("wrong", ["nan", "worse"])
def test_a_row_that_fails_ends_its_request_and_no_other(engine, toy, wrong, capsys):
    toy.hold()
    going = Client(engine, "abcd")
    toy.until(lambda: toy.running)
    failing = Client(engine, wrong)
    toy.allow()
    *_, failed = failing.all()
    assert failed.error.status == 500
    assert failed.error.message in (
        "computing the answer failed: ArithmeticError: NaN",
        "computing the answer failed: KeyError: 'worse'",
    )
    assert going.text() == "ABCD"
    assert toy.batches == 1
    assert "an answer failed" in capsys.readouterr().err


def test_a_batch_that_cannot_be_made_fails_who_waits(capsys):
    def broken():
        raise MemoryError

    engine = Engine(broken, slots=1)
    engine.start()
    for _ in range(2):
        [failed] = Client(engine, "ab").all()
        assert failed.error.message == "computing the answer failed: MemoryError"
    engine.stop()
    engine.wait()
    assert "MemoryError" in capsys.readouterr().err


def test_closing_ends_who_waits_and_lets_others_finish(engine, toy):
    toy.hold()
    running = Client(engine, "abc", "xyz")
    toy.until(lambda: len(toy.running) == 2)
    waiting = Client(engine, "one")
    engine.close()
    [failed] = waiting.all()
    assert (failed.error.status, failed.error.message) == (503, "the server is shutting down")
    with pytest.raises(ApiError, match="shutting down"):
        Client(engine, "two")
    toy.allow()
    assert running.text(1) == "XYZ"


def test_stopping_ends_everything(engine, toy):
    toy.hold()
    running = Client(engine, "forever", max_tokens=900)
    toy.until(lambda: toy.running)
    engine.stop()
    toy.allow()
    *_, failed = running.all()
    assert failed.error.code == "shutting_down"
    engine.wait()


def test_many_threads_ask_at_once(toy):
    engine = Engine(toy.batch, slots=4, waiting=100)
    engine.start()
    texts: list[str] = []

    def ask(number: int) -> None:
        client = Client(engine, f"number {number}", max_tokens=50, client=str(number % 3))
        if number % 4 == 3:
            engine.cancel(client.ticket)
        else:
            texts.append(client.text())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(texts) == sorted(f"NUMBER {number}" for number in range(24) if number % 4 != 3)
    engine.stop()
    engine.wait()
    assert engine.state()["active"] == engine.state()["waiting"] == 0
