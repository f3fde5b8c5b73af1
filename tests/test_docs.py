"""The documentation tells the truth: its Python runs and prints what it says, its links lead somewhere.

Every ```python block of README.md and docs/ runs. The blocks of a file share their names and run in order, in
a process of their own. A block that a ```text or ```output block follows must print that text; `...` there
stands for anything. A page that begins with `<!-- needs: onnx -->` is skipped where that is missing. Shell
blocks are not run here: .ci/run takes its commands from the README.
"""

from __future__ import annotations

import contextlib
import difflib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers import needs

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# ---- reading a page ----


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    line: int  # of its first line of text
    text: str
    follows: bool  # only empty lines stand between this block and the one before it


def blocks_of(page: str) -> list[Block]:
    blocks: list[Block] = []
    fence, language, inside, follows = "", "", list[str](), False
    for number, line in enumerate(page.splitlines(), 1):
        opening = re.match(r"\s*(`{3,}|~{3,})\s*(\w*)", line)
        if fence:
            if line.strip() == fence:
                text = textwrap.dedent("\n".join(inside))
                blocks.append(Block(language, number - len(inside), text, follows))
                fence, follows = "", True
            else:
                inside.append(line)
        elif opening:
            fence, language, inside = opening[1], opening[2], []
        elif line.strip():
            follows = False
    assert not fence, f"the block that begins with {inside[:1]} has no end"
    return blocks


# ---- running it ----


def run_page(path: Path) -> list[str]:
    """Run the page's Python here; what each of its blocks printed. Tracebacks show the page's own lines."""
    namespace = {"__name__": "__main__"}
    outputs = []
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * (block.line - 1) + block.text, path, "exec"), namespace)
            outputs.append(printed.getvalue())
    return outputs


def check_page(path: Path, directory: Path) -> None:
    """Run the page in a fresh process in `directory`; raises AssertionError where it does not hold."""
    __tracebackhide__ = True
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    env.pop("OPTS", None)  # a page shows what is chosen
    command = [sys.executable, __file__, str(path)]
    done = subprocess.run(
        command, cwd=directory, env=env, capture_output=True, text=True, encoding="utf-8", timeout=600
    )
    if done.returncode != 0:
        raise AssertionError(f"{path.name} does not run:\n{done.stderr}")

    outputs = iter(json.loads(done.stdout.splitlines()[-1]))
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language == "python":
            printed = next(outputs)
            if after and after.follows and after.language in ("text", "output"):
                if not same_text(after.text, printed):
                    raise AssertionError(
                        f"{path.name}, line {after.line}:\n{difference(after.text, printed)}"
                    )


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def same_text(expected: str, printed: str) -> bool:
    want, got = ("\n".join(trimmed(text)) + "\n" for text in (expected, printed))
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1)


def difference(expected: str, printed: str) -> str:
    return "\n".join(
        difflib.unified_diff(trimmed(expected), trimmed(printed), "the page", "printed", lineterm="")
    )


# ---- the tests ----


def has_python(path: Path) -> bool:
    return any(block.language == "python" for block in blocks_of(path.read_text(encoding="utf-8")))


def needed_by(path: Path) -> list[str]:
    """What a page needs besides the package, said in a comment: `<!-- needs: onnx -->`."""
    found = re.search(r"^<!-- needs: ([\w, -]+?) -->", path.read_text(encoding="utf-8"))
    return re.split(r", *", found[1]) if found else []


#: The pages that are run in each run; the others, which take minutes together, with `-m slow`.
READ_FIRST = ("README.md", "quickstart.md", "adding.md")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            path,
            id=path.relative_to(ROOT).as_posix(),
            marks=[needs(*needed_by(path)), *([] if path.name in READ_FIRST else [pytest.mark.slow])],
        )
        for path in PAGES
        if has_python(path)
    ],
)
def test_examples_run_and_print_what_the_page_says(page, tmp_path):
    check_page(page, tmp_path)


def test_links_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (
                f"{page.relative_to(ROOT)} links to {link}, which is not there"
            )


def anchors(page: Path) -> list[str]:
    """What GitHub calls the headings of a page in addresses."""
    prose = re.sub(r"^ *(```+).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", prose, re.M)
    texts = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts]


def test_links_into_a_page_lead_to_one_of_its_headings():
    headings = {page: anchors(page) for page in PAGES}
    for page in PAGES:
        for link, part in re.findall(r"\]\((?!\w+:)([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve() if link else page
            if target in headings:
                assert headings[target].count(part) == 1, (
                    f"{page.relative_to(ROOT)} links to {link}#{part}, which is not one place"
                )


def test_every_page_is_in_the_menu_of_the_site_and_in_the_readme():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:\n  -")[2]
    readme = PAGES[0].read_text(encoding="utf-8")
    listed = re.findall(r"[\w/]+\.md$", menu, re.M)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]]
    assert sorted(listed) == sorted(["index.md", *pages])
    for page in pages:
        if "/" not in page:
            assert f"](docs/{page})" in readme, f"the README does not list docs/{page}"


def test_lists_and_tables_are_the_same_on_the_site_as_on_github():
    """The site's Markdown begins them after an empty line, and nests a list by four spaces."""
    for page in PAGES:
        prose = re.sub(r"^ *(```+).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        before = ""
        for line in prose.splitlines():
            place = f"{page.relative_to(ROOT)}: {line[:60]!r}"
            item = re.match(r"( *)([-*+]|\d+\.) ", line)
            assert not item or len(item[1]) % 4 == 0, f"{place} is nested by {len(item[1])} spaces"
            for begins in (r" *([-*+]|\d+\.) ", r"\|"):
                if re.match(begins, line) and before and not before.startswith("  "):
                    assert re.match(begins, before), f"{place} follows a line of another kind"
            before = line


#: Files that pages name and that are not here: the reader's own, those of docs/adding.md, an older project's.
NOT_OURS = {"script.py", "runtime/echo.py", "lazygrad/runtime/echo.py"}
NOT_OURS |= {"lazygrad/codegen/opt/moves/reverse.py", "runtime/ops_clang.py", "train.py"}


def test_files_that_are_named_exist():
    """In pages and in the package's own text; named by the end of their path, `opt/search.py`."""
    folders = [ROOT / name for name in ("lazygrad", "docs", "bench", "tests", "examples")]
    files = [f"/{path.relative_to(ROOT).as_posix()}" for each in folders for path in each.rglob("*.py*")]
    problems = []
    for path in [*PAGES, *(ROOT / "lazygrad").rglob("*.py")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"(?<![\w{}./])[\w./]*\w\.py\b", line):
                if name not in NOT_OURS and not any(file.endswith(f"/{name}") for file in files):
                    problems.append(f"{path.relative_to(ROOT)}, line {number}: there is no {name}")
    assert not problems, "\n".join(["", *problems])


@pytest.mark.skipif(os.name == "nt", reason=".ci/run is a script for bash")
def test_ci_runs_the_two_commands_of_the_readme():
    commands = [
        block.text for block in blocks_of(PAGES[0].read_text(encoding="utf-8")) if block.language == "bash"
    ]
    demo, test = commands
    assert demo.endswith("python -m lazygrad demo")
    assert test.endswith("python -m pytest")
    taken = subprocess.run(
        [ROOT / ".ci" / "run", "commands"], capture_output=True, text=True, check=True
    ).stdout
    assert taken.splitlines() == commands


# ---- tests of the checker, on small pages ----


def check_text(directory: Path, text: str) -> None:
    page = directory / "page.md"
    page.write_text(textwrap.dedent(text), encoding="utf-8")
    check_page(page, directory)


def test_blocks_of_a_page_share_their_names(tmp_path):
    check_text(
        tmp_path,
        """
        ```python
        x = 1
        ```
        - in a list, with a longer fence

          ````python
          print(x + 1, "```")
          print("a", 123, "z  ")
          ````

          ```text
          2 ```
          a ... z
          ```
        ```text
        this follows a text
        ```
        """,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nprint(1)\n```\n```text\n2\n```", r"page.md, line 5:\n--- the page(.|\n)*-2\n\+1"),
        ("```python\nprint(1)\n```\n\n```output\nTrue\n```", "page.md, line 6:"),
        ("```python\n1\n```\n```text\n2\n```", "page.md, line 5:"),
        ("\n```python\n\n1/0\n```", r'page.md", line 4(.|\n)*1/0\n(.|\n)*ZeroDivisionError'),
        ("```python\nprint(1)\n", "has no end"),
    ],
)
def test_a_page_that_is_wrong_fails(tmp_path, text, message):
    with pytest.raises(AssertionError, match=message):
        check_text(tmp_path, text)


def test_text_after_words_is_not_expected_output(tmp_path):
    check_text(tmp_path, "```python\nprint(1)\n```\nSome words.\n```text\n2\n```")


if __name__ == "__main__":
    print(json.dumps(run_page(Path(sys.argv[1]))))
