// The texts of a kernel beside its loops: what is pointed at, focused or clicked in one is marked in the others.
import { make } from "./words.js";

const NAME = 0, EXTENT = 1, KIND = 2, NUMBER = 3, AROUND = 4, FIRST = 5, LAST = 6;

/** The loops under each Opt, and the text of each target with its own loops. */
export function loopsAndTexts(details) {
  const link = new Link(details);
  return [optsSection(details, link), textsSection(details, link)];
}

/**
 * What is marked. A loop is `{ at, within, said }`: which loop of the text that is shown, or where it has no lines of
 * its own, the one that its turns are written out in.
 */
class Link {
  constructor(details) {
    this.details = { text_loops: {}, machine_loops: [], ...details };
    this.target = "own";
    this.pinned = null;
    this.lines = [];
    this.buttons = [];
    this.said = make("output", { id: "loop-said", class: "soft" });
  }

  /** The loops of the text that is shown; machine code has those of the device's text. */
  get loops() { return this.details.text_loops[this.target === "assembly" ? "own" : this.target] ?? []; }

  /** The lines of a loop as pairs of the first and the last. */
  spans(at) {
    if (this.target !== "assembly") return [[this.loops[at][FIRST], this.loops[at][LAST]]];
    return this.details.machine_loops.filter(([loop]) => loop === at).flatMap(([, spans]) => spans);
  }

  /** The innermost loop around a line; -1 if there is none. */
  loopOf(line) {
    let best = -1, least = Infinity;
    this.loops.forEach((_, at) => {
      const spans = this.spans(at), size = spans.reduce((sum, [a, b]) => sum + b - a + 1, 0);
      if (size <= least && spans.some(([a, b]) => a <= line && line <= b)) [best, least] = [at, size];
    });
    return best;
  }

  /** What a loop of the text is, and the loops that it is in. */
  tell(at) {
    const names = [];
    for (let n = at; n >= 0; n = this.loops[n][AROUND]) names.push(`${this.loops[n][NAME]} in ${this.loops[n][EXTENT]}`);
    const spans = this.spans(at), kind = this.loops[at][KIND] === "LAUNCH" ? "an axis of the launch" : this.loops[at][KIND];
    const where = spans.map(([a, b]) => (a === b ? `${a + 1}` : `${a + 1} to ${b + 1}`)).join(", ");
    return `${names.join(", inside of ")}; ${kind}; ${spans.length ? `lines ${where}` : "no lines in this text"}`;
  }

  /** Mark a loop and its lines; nothing where `loop` is null. */
  mark(loop) {
    const at = loop?.at ?? -1, within = loop?.within ?? -1, shown = at >= 0 ? at : within;
    const spans = shown >= 0 ? this.spans(shown) : [], kind = at >= 0 ? "marked" : "within";
    this.lines.forEach((line, n) => {
      const here = spans.some(([a, b]) => a <= n && n <= b);
      line.classList.toggle("marked", here && kind === "marked");
      line.classList.toggle("within", here && kind === "within");
    });
    for (const [button, own] of this.buttons) {
      const mine = own();
      button.classList.toggle("marked", Boolean(loop) && (mine.at >= 0 ? mine.at === at : mine.key === loop.key && at < 0));
      button.setAttribute("aria-pressed", String(Boolean(this.pinned) && this.pinned.key === mine.key));
    }
    this.said.textContent = loop ? loop.said ?? this.tell(at) : "";
  }

  pin(loop, scroll = true) {
    this.pinned = loop && this.pinned?.key === loop.key ? null : loop;
    this.mark(this.pinned);
    if (scroll && this.pinned) this.show();
  }

  /** Scroll the text to what is marked. */
  show() {
    const first = this.lines.find((line) => line.matches(".marked, .within"));
    if (first) first.parentElement.scrollTop = first.offsetTop - first.parentElement.offsetTop - 30;
  }

  /** A button for a loop; `own()` is the loop in what is shown now. */
  button(own, ...children) {
    const button = make("button", {
      class: "loop", "aria-pressed": "false", onclick: () => this.pin(own()),
      onpointerenter: () => this.mark(own()), onpointerleave: () => this.mark(this.pinned),
      onfocus: () => this.mark(own()), onblur: () => this.mark(this.pinned),
    }, ...children);
    this.buttons.push([button, own]);
    return button;
  }

  forget(within) { this.buttons = this.buttons.filter(([button]) => !within.contains(button)); }
}

/** The loops before and after each Opt. */
function optsSection(details, link) {
  if (!details.opts.length) return make("p", { class: "soft" }, "It is written as a linear program at once: there are no loops to optimize.");
  const name = make("output", { id: "opt-name" }), tree = make("div", { id: "loops" }), text = make("pre", { tabindex: 0 });
  const slider = make("input", {
    type: "range", min: 0, max: details.opts.length - 1, value: details.opts.length - 1, id: "opts", "aria-label": "Opts applied",
  });

  /** The loop of the text that walks the same axis, which only the text of the kernel's own device can say. */
  const inText = (loop, around) => {
    const key = `opt ${loop.number}`, own = link.target === "own" || link.target === "assembly";
    const find = (one) => link.loops.findIndex((each) => each[NUMBER] === one.number);
    const at = own ? find(loop) : -1;
    if (at >= 0) return { key, at };
    const outer = own ? around.findLast((one) => find(one) >= 0) : undefined;
    const within = outer ? find(outer) : -1;
    const said = !own ? `${loop.name}: this text has other Opts, and loops of its own`
      : outer ? `${loop.name} has no lines of its own: its turns are lanes of vectors, or written out, inside of ${link.tell(within)}`
        : `${loop.name} has no lines of its own: its turns are lanes of vectors, or written out, or run at once`;
    return { key, at: -1, within, said };
  };
  const branch = (inside, around) => (inside.length ? make("ul", { class: "tree" }, inside.map((loop) => make("li", {},
    link.button(() => inText(loop, around), `${loop.name} in 0..${loop.size} `, make("span", { class: "kind" }, loop.kind)),
    branch(loop.inside, [...around, loop])))) : "");
  const go = () => {
    const at = Number(slider.value), shown = details.opts[at];
    name.textContent = `${at} of ${details.opts.length - 1}: ${shown.opt}`;
    link.forget(tree);
    tree.replaceChildren(branch(shown.loops, []));
    text.textContent = shown.text;
  };
  slider.addEventListener("input", go);
  go();
  return make("section", { "aria-label": "loops" }, make("h2", {}, "Loops, Opt by Opt"), slider, name, tree, text);
}

function textsSection(details, link) {
  const all = { ...details.sources };
  if (details.assembly) all.assembly = details.assembly;
  const text = make("pre", { id: "source", tabindex: 0, role: "group", "aria-label": "text; up and down go through its lines", "aria-describedby": "loop-said" });
  const tree = make("div", { id: "text-loops" }), hot = make("p", { id: "hot", class: "soft" });
  let cursor = -1;
  const atLine = (line) => {
    const at = link.loopOf(line);
    return { key: `text ${at}`, at, said: `line ${line + 1}: ${at >= 0 ? link.tell(at) : "in no loop"}` };
  };
  const lineAt = (event) => link.lines.indexOf(event.target.closest("#source > span"));
  text.addEventListener("pointerover", (event) => { if (lineAt(event) >= 0) link.mark(atLine(lineAt(event))); });
  text.addEventListener("pointerleave", () => link.mark(link.pinned));
  text.addEventListener("click", (event) => { if (lineAt(event) >= 0) { go(lineAt(event)); link.pin(atLine(cursor), false); } });
  text.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      go(Math.min(Math.max(cursor + by, 0), link.lines.length - 1));
      link.lines[cursor].scrollIntoView({ block: "nearest" });
      link.mark(atLine(cursor));
    } else if (event.key === "Enter" && cursor >= 0) link.pin(atLine(cursor), false);
  });
  text.addEventListener("blur", () => { go(-1); link.mark(link.pinned); });

  function go(line) {
    link.lines[cursor]?.classList.remove("cursor");
    cursor = line;
    link.lines[cursor]?.classList.add("cursor");
  }

  function branch(around) {
    const inside = link.loops.map((_, at) => at).filter((at) => link.loops[at][AROUND] === around);
    return inside.length ? make("ul", { class: "tree" }, inside.map((at) => make("li", {},
      link.button(() => ({ key: `text ${at}`, at }), `${link.loops[at][NAME]} in ${link.loops[at][EXTENT]} `,
        make("span", { class: "kind" }, link.loops[at][KIND])), branch(at)))) : "";
  }

  function choose() {
    link.target = choice.value;
    link.pinned = null;
    cursor = -1;
    const lines = all[choice.value].split("\n"), marks = choice.value === "assembly" && details.hot ? details.hot.lines : [];
    link.lines = lines.map((line, n) => make("span",
      { class: marks.some(([a, b]) => a <= n && n <= b) ? "hot" : null }, n + 1 < lines.length ? `${line}\n` : line));
    text.replaceChildren(...link.lines);
    link.forget(tree);
    tree.replaceChildren(branch(-1));
    hot.replaceChildren(...(choice.value === "assembly" ? hotWords() : []));
    link.mark(null);
  }

  function hotWords() {
    const found = details.hot;
    if (!found) return [details.assembly ? "there is no loop in this code" : ""];
    const [first] = found.lines[0], turns = found.turns ? `, ${found.turns.join(" × ")} times` : "";
    const share = found.executed ? `: about ${(100 * found.executed[0] / found.executed[1]).toPrecision(3)}% of the ` +
      `${found.executed[1].toLocaleString("en")} instructions that are executed` : "; how often it turns is not known, since the loops " +
      "of this code are not those of the program, so it is the longest of the innermost ones";
    const name = found.loop >= 0 ? ` (${link.loops[found.loop][NAME]})` : "";
    const button = make("button", { onclick: () => link.lines[first]?.scrollIntoView({ block: "center" }) }, "to the hot loop");
    return [`Hot loop${name}: ${found.instructions} instructions from line ${first + 1} on${turns}${share}. `, first < link.lines.length ? button : "It is below what is kept."];
  }

  const choice = make("select", { id: "target", "aria-label": "target", onchange: choose },
    Object.keys(all).map((name) => make("option", { value: name }, name === "own" ? "its device" : name)));
  choose();
  return make("section", { "aria-label": "texts" }, make("h2", {}, "Text for each target"), choice, hot,
    make("div", { class: "linked" }, tree, text), link.said);
}
