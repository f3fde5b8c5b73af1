"""What the documentation site needs of mkdocs beyond the settings in mkdocs.yml, which names this file.

The pages are written for readers of the repository: the README is their front page, links lead to source
files too, and a link to a page often has its file's name as its text. On the site the README is the home, a
link to a source file is plain text, and a link to a page says its title.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page


class _SiteLinks(Treeprocessor):
    """Rewrites the links of `page`, one of `files`; others than to files and pages of the repository stay."""

    page: Page
    files: Files
    docs: Path  # the folder of the pages

    def run(self, root: Element) -> None:
        folder = posixpath.dirname(self.page.file.src_uri)
        for link in root.iter("a"):
            address = link.get("href", "").partition("#")[0]
            path = posixpath.normpath(posixpath.join(folder, address))
            linked = self.files.get_file_from_path(path)
            if not address or ":" in address:
                pass
            elif linked is None:
                # The README's links begin at the repository.
                if (self.docs / path).exists() or (self.docs.parent / path).exists():
                    link.tag = "code" if link.text == address else "span"
                    link.attrib.clear()
            elif link.text and (link.text.endswith(".md") or link.text.startswith("docs/")):
                link.text = None
                SubElement(link, "em").text = _title(linked)


def _title(file: File) -> str:
    heading = re.search(r"^# (.*)$", file.content_string, re.M)
    if heading is None:
        raise ValueError(f"{file.src_uri} has no heading")
    return heading[1]


class _Links(Extension):
    def __init__(self) -> None:
        super().__init__()
        self.rewrites = _SiteLinks()

    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(self.rewrites, "site_links", 1)  # just before mkdocs checks links, at 0


_links = _Links()

# ---- called by mkdocs ----


def on_config(config: MkDocsConfig) -> None:
    config.markdown_extensions.append(_links)


def on_files(files: Files, config: MkDocsConfig) -> None:
    readme = Path(config.config_file_path).with_name("README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=readme.replace("](docs/", "](")))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    _links.rewrites.page, _links.rewrites.files, _links.rewrites.docs = page, files, Path(config.docs_dir)
    return re.sub(r"\A<!-- needs: .*? -->\s*", "", markdown)  # which tests read; a title must come first
