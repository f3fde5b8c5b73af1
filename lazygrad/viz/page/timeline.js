// What happened when: a row for each thread and each device, zoomed with the wheel or + and -, moved by dragging. The
// ranks of a distributed run have a group of rows each. Captures of jits and their replays lead to each other.
import { Picture, callText, color, count, fitted, make, seconds } from "./words.js";

const ROW = 34, HEAD = 26, GROUP = 20, LABEL = 120, TICK = 75, ON_DEVICE = new Set(["kernel", "copy", "replay"]);
const KINDS = ["plan", "lower", "compile", "capture", "kernel", "copy", "replay"];

export function timelineView(recording, open) {
  const found = new Map(), ranks = recording.ranks ?? [];
  const byCapture = new Map(recording.captures.map((_, n) => [n, []]));
  for (const event of recording.events) {
    const [kind, , , thread, device] = event;
    const rank = ranks.findIndex(({ threads: [first, last] }) => first <= thread && thread < last);
    const name = ON_DEVICE.has(kind) ? `device ${recording.names[device]}` : `thread ${recording.threads[thread]}`;
    const key = `${rank} ${name}`;
    if (!found.has(key)) found.set(key, { rank, name, events: [] });
    found.get(key).events.push(event);
    byCapture.get(event[6])?.push(event);
  }
  const rows = [...found.values()].sort((a, b) => a.rank - b.rank || (a.name < b.name ? 1 : -1));
  let high = HEAD;
  const groups = [];
  rows.forEach((row, n) => {
    row.events.sort((a, b) => a[1] - b[1] || b[2] - a[2]);
    if (row.rank >= 0 && row.rank !== rows[n - 1]?.rank) {
      groups.push([high, ranks[row.rank].name]);
      high += GROUP;
    }
    row.y = high;
    high += ROW;
  });
  high += 8;
  const end = recording.events.reduce((most, e) => Math.max(most, e[1] + e[2]), 1);
  let from = 0, to = end;
  const status = make("p", { class: "soft", id: "event", "aria-live": "polite" }, "Point at an event; a click on a kernel opens it.");
  const picture = new Picture(`timeline: ${count(recording.events.length, "event")} in ${count(rows.length, "row")}`, paint);
  const inside = make("div", { id: "inside" });
  const totals = KINDS.map((kind) => [kind, recording.events.filter((e) => e[0] === kind)]).filter(([, all]) => all.length);
  const element = make("section", {},
    make("div", { class: "bar" }, make("button", { onclick: () => range(0, end) }, "all"),
      make("a", { href: "trace.json", download: "trace.json" }, "for ui.perfetto.dev")),
    make("div", { class: "stage low", id: "timeline" }, picture.element), status, inside,
    make("table", { "aria-label": "by kind" },
      make("thead", {}, make("tr", {}, ["what", "count", "time"].map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, totals.map(([kind, all]) => make("tr", {}, make("td", {}, kind), make("td", {}, all.length),
        make("td", {}, seconds(all.reduce((sum, e) => sum + e[2], 0) / 1e6)))))));

  const parts = new Map(recording.captures.map((capture, n) => [n, predictedParts(recording, capture)]));
  const label = (event) => (event[5] >= 0 ? recording.kernels[event[5]].name : recording.names[-1 - event[5]]);
  const px = (at) => LABEL + (picture.width - LABEL) * (at - from) / (to - from);
  const at = (x) => from + (to - from) * (x - LABEL) / Math.max(picture.width - LABEL, 1);

  function range(a, b) {
    const wide = Math.min(Math.max(b - a, 1), end);
    from = Math.min(Math.max(a, 0), end - wide);
    to = from + wide;
    picture.redraw();
  }

  function zoom(factor, around) {
    range(around - (around - from) * factor, around + (to - around) * factor);
  }

  function paint(context, width) {
    const least = (to - from) * TICK / Math.max(width - LABEL, 1), ten = 10 ** Math.floor(Math.log10(least));
    const step = ten * [1, 2, 5, 10].find((times) => ten * times >= least);
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      context.fillStyle = color("line");
      context.fillRect(px(t), HEAD - 6, 1, high - HEAD);
      context.fillStyle = color("soft");
      if (px(t) + 60 < width) context.fillText(seconds(t / 1e6), px(t) + 3, 14);
    }
    let drawn = 0;
    for (const [y, name] of groups) {
      context.fillStyle = color("box");
      context.fillRect(0, y + 2, width, GROUP - 4);
      context.fillStyle = color("text");
      context.fillText(fitted(context, name, width - 8), 4, y + 14);
    }
    for (const { name, events, y } of rows) {
      context.fillStyle = color("text");
      context.fillText(fitted(context, name, LABEL - 8), 4, y + 20);
      let last = -1;
      for (const event of events) {
        const x1 = Math.max(px(event[1]), LABEL), x2 = Math.min(px(event[1] + event[2]), width);
        if (x2 < LABEL || x1 > width || Math.max(x2, x1 + 1) <= last) continue; // it is drawn already, to the pixel
        last = Math.max(x2, x1 + 1);
        drawn += 1;
        context.fillStyle = color(event[0]);
        context.fillRect(x1, y + 3, Math.max(x2 - x1, 1), ROW - 8);
        if (x2 - x1 > 30) {
          context.fillStyle = color("panel");
          context.fillText(fitted(context, label(event), x2 - x1 - 6), x1 + 3, y + (event[0] === "replay" && parts.get(event[6])?.length ? 14 : 20));
          if (event[0] === "replay") paintParts(context, event, y);
        }
      }
    }
    picture.element.dataset.drawn = drawn;
    picture.element.dataset.from = from;
    picture.element.dataset.to = to;
  }

  /** Below a replay's name, its kernels as wide as their predicted shares. */
  function paintParts(context, event, y) {
    (parts.get(event[6]) ?? []).forEach(({ from: begin, share }, n) => {
      const x1 = Math.max(px(event[1] + begin * event[2]), LABEL), x2 = Math.min(px(event[1] + (begin + share) * event[2]), picture.width);
      if (x2 < x1 + 1) return;
      context.fillStyle = color(n % 2 ? "box" : "group");
      context.fillRect(x1, y + 18, x2 - x1, ROW - 24);
    });
  }

  /** The kernel that runs at a moment of a replay, by prediction. */
  function partAt(event, moment) {
    const share = (moment - event[1]) / Math.max(event[2], 1e-9);
    return event[0] === "replay" ? parts.get(event[6])?.findLast((part) => part.from <= share) : undefined;
  }

  function hit(x, y) {
    const row = rows.find((each) => each.y <= y && y < each.y + ROW)?.events ?? [], slack = (to - from) / Math.max(picture.width - LABEL, 1);
    const when = at(x);
    return row.findLast((e) => e[1] - slack <= when && when <= e[1] + e[2] + slack);
  }

  const canvas = picture.element;
  let held = null, moved = 0;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 400), at(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    [held, moved] = [event.offsetX, 0];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held !== null) {
      const by = at(held) - at(event.offsetX);
      moved += Math.abs(event.offsetX - held);
      held = event.offsetX;
      range(from + by, to + by);
    } else {
      const found = hit(event.offsetX, event.offsetY);
      if (found) tell(found, at(event.offsetX));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    held = null;
    const found = moved < 6 ? hit(event.offsetX, event.offsetY) : null;
    if (!found) return;
    tell(found, at(event.offsetX));
    if (found[6] !== undefined) look(found);
    else if (found[5] >= 0) open("kernels", found[5]);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = (to - from) / 5, middle = (from + to) / 2;
    const keys = {
      ArrowLeft: () => range(from - step, to - step), ArrowRight: () => range(from + step, to + step),
      "+": () => zoom(0.7, middle), "-": () => zoom(1.4, middle), 0: () => range(0, end),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  function tell(event, moment) {
    const part = partAt(event, moment);
    const kernel = event[5] >= 0 ? recording.kernels[event[5]] : null;
    const calls = kernel ? kernel.calls.map((n) => callText(recording, n)).filter(Boolean).join(", ") : "";
    status.textContent = `${event[0]}: ${label(event)}${kernel ? ` ${kernel.shape}` : ""}, ${seconds(event[2] / 1e6)} ` +
      `from ${seconds(event[1] / 1e6)} on${calls ? `; ${calls}` : ""}` +
      (part ? `; here, by prediction, ${part.name}` : "");
  }

  /** Show a capture or a replay: what is inside of it, and the way to the others of the same capture. */
  function look(event) {
    const capture = recording.captures[event[6]], all = byCapture.get(event[6]), here = all.indexOf(event);
    const step = (next, text) => make("button", {
      disabled: !next || next === event,
      onclick: () => { range(next[1] - next[2], next[1] + 2 * next[2]); tell(next, next[1]); look(next); },
    }, text);
    const shares = new Map((parts.get(event[6]) ?? []).map((part) => [part.step, part.share]));
    const replay = all.filter((e) => e[0] === "replay").indexOf(event) + 1;
    inside.replaceChildren(
      make("h2", { id: "inside-heading" }, `${replay ? `replay ${replay} of ${capture.replays}` : "the capture"} of ${capture.name || "a function captured earlier"}: ` +
        `${count(capture.steps.length, "kernel")}${capture.replays ? `, ${seconds(capture.best)} at best` : ""}`),
      make("div", { class: "bar" }, step(all.find((e) => e[0] === "capture"), "its capture"),
        step(all[here - 1], "the one before"), step(all[here + 1], "the next replay")),
      make("table", { "aria-label": "kernels inside" },
        make("thead", {}, make("tr", {}, ["", "kernel", "shape", "predicted share", "alone", "your lines"].map((t) => make("th", { scope: "col" }, t)))),
        make("tbody", {}, capture.steps.map((number, n) => {
          const kernel = number >= 0 ? recording.kernels[number] : null;
          return make("tr", {}, make("td", { class: "number" }, n),
            make("td", {}, kernel ? make("button", { onclick: () => open("kernels", number) }, kernel.name) : "a copy, or not recorded"),
            make("td", {}, kernel?.shape ?? ""),
            make("td", { class: "number" }, shares.has(n) ? `${(100 * shares.get(n)).toFixed(1)} %` : ""),
            make("td", { class: "number" }, kernel?.runs ? seconds(kernel.best) : ""),
            make("td", {}, kernel ? kernel.calls.map((c) => callText(recording, c)).filter(Boolean).join(", ") : ""));
        }))));
  }

  picture.element.parentElement.style.height = `${high}px`;
  picture.element.parentElement.style.minHeight = `${high}px`;
  const middleOf = (event) => {
    const row = rows.find((each) => each.events.includes(event));
    return [px(event[1] + event[2] / 2), row.y + ROW / 2];
  };
  return { element, shown: () => picture.redraw(), zoomTo: range, middleOf: (n) => middleOf(recording.events[n]) };
}

/** The kernels of a capture, where they begin and how much of the time they take by the predicted cycles. */
function predictedParts(recording, capture) {
  const known = capture.steps.map((number, step) => ({ step, kernel: recording.kernels[number] })).filter(({ kernel }) => kernel?.cycles);
  const all = known.reduce((sum, { kernel }) => sum + kernel.cycles, 0);
  let from = 0;
  return known.map(({ step, kernel }) => {
    const share = kernel.cycles / all, part = { step, from, share, name: kernel.name };
    from += share;
    return part;
  });
}
