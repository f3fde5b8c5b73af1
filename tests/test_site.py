"""The documentation site, as mkdocs builds it: read as files, and in Chromium."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.exporting.browser import Shown, chromium, playwright, served
from tests.helpers import ROOT, needs
from tests.test_docs import PAGES, blocks_of, trimmed

pytestmark = [needs("mkdocs"), pytest.mark.slow]


def build(directory: Path, config: Path = ROOT / "mkdocs.yml") -> str:
    """Builds a site into `directory`, as .ci/run does; what mkdocs says if it refuses."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    return done.stderr if done.returncode else ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    directory = tmp_path_factory.mktemp("site")
    assert build(directory) == ""
    return directory


def built(site: Path, page: Path) -> Path:
    if page == ROOT / "README.md":
        return site / "index.html"
    path = page.relative_to(ROOT / "docs").with_suffix(".html")
    return site / (path.with_name("index.html") if page.name == "README.md" else path)


# ---- the pages as files ----


class Article(HTMLParser):
    """The blocks of code of a page: the text of each, and the kinds of tokens that are told apart in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.blocks: list[tuple[list[str], set[str]]] = []
        self._inside, self._text, self._kinds = False, "", set[str]()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._inside, self._text, self._kinds = True, "", set()
        elif tag == "span" and self._inside:
            self._kinds |= {kind for name, kind in attrs if name == "class" and kind}

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._inside = False
            self.blocks.append((trimmed(textwrap.dedent(self._text)), self._kinds))

    def handle_data(self, data: str) -> None:
        if self._inside:
            self._text += data


def test_blocks_of_code_are_shown_as_they_are_written(site: Path) -> None:
    """In their order, whole; Python is coloured, and what a program printed has one colour."""
    for page in PAGES:
        shown = iter(Article(built(site, page)).blocks)
        for block in blocks_of(page.read_text(encoding="utf-8")):
            kinds = next((kinds for text, kinds in shown if text == trimmed(block.text)), None)
            assert kinds is not None, f"{page}, line {block.line}: the block is not there"
            if block.language in ("python", "text", "output", ""):
                assert (len(kinds) > 1) == (block.language == "python"), f"{page}, line {block.line}"


@pytest.fixture
def small(tmp_path: Path) -> Any:
    """Builds a site of a README and one page, with our settings; the complaints and the page."""

    def made(page: str, nav: str = "[index.md, page.md]") -> tuple[str, str]:
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "page.md").write_text(page, encoding="utf-8")
        (tmp_path / "docs" / "site.css").touch()
        (tmp_path / "README.md").write_text("# Front\n\n[docs/page.md](docs/page.md)\n", encoding="utf-8")
        settings = f"""
            INHERIT: {ROOT / "mkdocs.yml"}
            hooks: [{ROOT / "docs" / "site_hooks.py"}]
            nav: {nav}
        """
        (tmp_path / "mkdocs.yml").write_text(textwrap.dedent(settings), encoding="utf-8")
        complaints = build(tmp_path / "site", tmp_path / "mkdocs.yml")
        text = "" if complaints else (tmp_path / "site" / "page.html").read_text(encoding="utf-8")
        return complaints, text

    return made


@pytest.mark.parametrize(
    ("page", "nav", "complaint"),
    [
        ("# A page\n\n[there](nowhere.md)\n", "[index.md, page.md]", "'nowhere.md', but the target is not"),
        ("# A page\n\n[there](#nowhere)\n", "[index.md, page.md]", "no such anchor on this page"),
        ("# A page\n\n![](nowhere.png)\n", "[index.md, page.md]", "'nowhere.png', but the target is not"),
        ("# A page\n", "[index.md, page.md, nowhere.md]", "'nowhere.md' is included in the 'nav'"),
        ("# A page\n", "[index.md]", 'not included in the "nav" configuration:\n  - page.md'),
    ],
    ids=["page", "part", "picture", "navigation", "omitted"],
)
def test_what_is_not_there_ends_the_build(small: Any, page: str, nav: str, complaint: str) -> None:
    assert complaint in small(page, nav)[0]


def test_a_link_to_a_source_file_is_text_and_one_to_a_page_its_title(small: Any) -> None:
    links = ["[../mkdocs.yml](../mkdocs.yml)", "[settings](../mkdocs.yml#nav)", "[index.md](index.md#front)"]
    links += ["[the home](index.md)", "`[index.md](index.md)`", "<https://lazygrad.test>"]
    complaints, html = small("<!-- needs: torch -->\n# A page\n\n" + ";\n".join(links))
    assert complaints == ""
    shown = re.search(r"<p>(.*mkdocs.*?)</p>", html, re.S)
    assert shown is not None
    assert shown[1].split(";\n") == [
        "<code>../mkdocs.yml</code>",
        "<span>settings</span>",
        '<a href="index.html#front"><em>Front</em></a>',
        '<a href="index.html">the home</a>',
        "<code>[index.md](index.md)</code>",
        '<a href="https://lazygrad.test">https://lazygrad.test</a>',
    ]
    assert "<title>A page - lazygrad</title>" in html


# ---- the pages in a browser ----


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright() as started, chromium(started) as opened:
        yield opened


@pytest.fixture
def shown(browser: Any, site: Path) -> Iterator[Shown]:
    """The site's home; nothing may be asked of another host, and the console has nothing to say."""
    foreign: list[str] = []
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(served(site))
        made = Shown(browser, "about:blank")
        made.page.on(
            "request", lambda request: request.url.startswith(address) or foreign.append(request.url)
        )
        made.page.goto(address)
        yield made
        made.page.close()
    assert foreign == []
    assert made.errors == []


def settled(shown: Shown, script: str, expected: Any) -> Any:
    """What `script` gives on the page, once that is as expected; else after ten seconds."""
    end = time.monotonic() + 10
    while (found := shown.page.evaluate(script)) != expected and time.monotonic() < end:
        time.sleep(0.05)
    return found


#: What each page is asked: the texts of its title, its heading and its entry in the navigation, whether all
#: pictures are there, how much wider it is than the screen.
FACTS = """() => ({
  title: document.title.replace(" - lazygrad", ""),
  heading: document.querySelector("h1").firstChild.textContent,
  entry: document.querySelector(".md-nav--primary a.md-nav__link--active").textContent.trim(),
  pictures: [...document.querySelectorAll("article img")].every((each) => each.naturalWidth > 0),
  over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
})"""
#: Entries of the navigation that are not the heading of their page.
SHORT = {"lazygrad": "What it is", "The methods of Tensor": "Methods of Tensor"}
SHORT |= {"How fast the compiler and its code are": "Performance"}


PHONE = {"width": 390, "height": 800}


def test_each_entry_of_the_navigation_opens_its_page(shown: Shown, site: Path) -> None:
    """On a phone, where nothing is wider than the screen."""
    links = "[...document.querySelectorAll('.md-nav--primary a.md-nav__link')].map((link) => link.href)"
    entries = [entry for entry in shown.page.evaluate(links) if "#" not in entry]
    home = shown.page.url
    headings = {}
    for page in PAGES:
        address = built(site, page).relative_to(site).as_posix()
        headings[home + address] = page.read_text(encoding="utf-8").partition("# ")[2].splitlines()[0]
    assert sorted(set(entries)) == sorted(headings)
    shown.page.set_viewport_size(PHONE)
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    index["docs"] = []  # to read them takes most of a page's time, and search is another test
    shown.page.route("**/search_index.json", lambda route: route.fulfill(json=index))
    for address, heading in headings.items():
        shown.page.goto(address)
        entry = SHORT.get(heading, heading)
        title = heading if address.endswith("/index.html") else entry
        facts = dict(title=title, heading=heading, entry=entry, pictures=True, over=0)
        assert settled(shown, FACTS, facts) == facts, address


def test_search_finds_a_method(shown: Shown) -> None:
    shown.page.press("body", "/")
    shown.page.keyboard.type("Tensor.scan")
    shown.page.locator(".md-search-result__link[href*='computing.html'][href$='#scan']").click()
    shown.until("h1", "Computing, writing, gradients")
    assert shown.page.url.endswith("#scan")
    assert shown.page.evaluate("Math.abs(document.querySelector('#scan').getBoundingClientRect().top)") < 400


def test_light_and_dark(shown: Shown) -> None:
    """As the system says, until the reader chooses; the choice is kept."""
    scheme = "document.body.dataset.mdColorScheme"
    for system, expected in (("dark", "slate"), ("light", "default"), ("dark", "slate")):
        shown.page.emulate_media(color_scheme=system)
        assert settled(shown, scheme, expected) == expected
    dark = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    for chosen in ("default", "slate", "slate", "default"):  # light, dark, as the system says, light
        shown.page.locator("form[data-md-component=palette] label:visible").click()
        assert settled(shown, scheme, chosen) == chosen
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    shown.page.reload()
    assert settled(shown, scheme, "default") == "default"
