// What happened when: a row for each thread and each device, zoomed with the wheel or + and -, moved by dragging.
import { Picture, callText, color, count, fitted, make, seconds } from "./words.js";

const ROW = 34, HEAD = 26, LABEL = 120, ON_DEVICE = new Set(["kernel", "copy", "replay"]);
const KINDS = ["plan", "lower", "compile", "kernel", "copy", "replay"];

export function timelineView(recording, open) {
  const rows = new Map();
  for (const event of recording.events) {
    const [kind, , , thread, device] = event;
    const name = ON_DEVICE.has(kind) ? `device ${recording.names[device]}` : `thread ${recording.threads[thread]}`;
    if (!rows.has(name)) rows.set(name, []);
    rows.get(name).push(event);
  }
  for (const events of rows.values()) events.sort((a, b) => a[1] - b[1] || b[2] - a[2]);
  const names = [...rows.keys()].sort().reverse();
  const high = HEAD + ROW * names.length + 8;
  const end = recording.events.reduce((most, e) => Math.max(most, e[1] + e[2]), 1);
  let from = 0, to = end;
  const status = make("p", { class: "soft", id: "event", "aria-live": "polite" }, "Point at an event; a click on a kernel opens it.");
  const picture = new Picture(`timeline: ${count(recording.events.length, "event")} in ${count(names.length, "row")}`, paint);
  const totals = KINDS.map((kind) => [kind, recording.events.filter((e) => e[0] === kind)]).filter(([, all]) => all.length);
  const element = make("section", {},
    make("div", { class: "bar" }, make("button", { onclick: () => range(0, end) }, "all"),
      make("a", { href: "trace.json", download: "trace.json" }, "for ui.perfetto.dev")),
    make("div", { class: "stage low", id: "timeline" }, picture.element), status,
    make("table", { "aria-label": "by kind" },
      make("thead", {}, make("tr", {}, ["what", "count", "time"].map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, totals.map(([kind, all]) => make("tr", {}, make("td", {}, kind), make("td", {}, all.length),
        make("td", {}, seconds(all.reduce((sum, e) => sum + e[2], 0) / 1e6)))))));

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
    const step = 10 ** Math.floor(Math.log10((to - from) / 4));
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      context.fillStyle = color("line");
      context.fillRect(px(t), HEAD - 6, 1, names.length * ROW + 6);
      context.fillStyle = color("soft");
      if (px(t) + 60 < width) context.fillText(seconds(t / 1e6), px(t) + 3, 14);
    }
    let drawn = 0;
    names.forEach((name, row) => {
      const y = HEAD + row * ROW;
      context.fillStyle = color("text");
      context.fillText(fitted(context, name, LABEL - 8), 4, y + 20);
      let last = -1;
      for (const event of rows.get(name)) {
        const x1 = Math.max(px(event[1]), LABEL), x2 = Math.min(px(event[1] + event[2]), width);
        if (x2 < LABEL || x1 > width || Math.max(x2, x1 + 1) <= last) continue; // it is drawn already, to the pixel
        last = Math.max(x2, x1 + 1);
        drawn += 1;
        context.fillStyle = color(event[0]);
        context.fillRect(x1, y + 3, Math.max(x2 - x1, 1), ROW - 8);
        if (x2 - x1 > 30) {
          context.fillStyle = color("panel");
          context.fillText(fitted(context, label(event), x2 - x1 - 6), x1 + 3, y + 20);
        }
      }
    });
    picture.element.dataset.drawn = drawn;
    picture.element.dataset.from = from;
    picture.element.dataset.to = to;
  }

  function hit(x, y) {
    const row = rows.get(names[Math.floor((y - HEAD) / ROW)]) ?? [], slack = (to - from) / Math.max(picture.width - LABEL, 1);
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
      if (found) tell(found);
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    held = null;
    const found = moved < 6 ? hit(event.offsetX, event.offsetY) : null;
    if (!found) return;
    tell(found);
    if (found[5] >= 0) open("kernels", found[5]);
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

  function tell(event) {
    const kernel = event[5] >= 0 ? recording.kernels[event[5]] : null;
    const calls = kernel ? kernel.calls.map((n) => callText(recording, n)).filter(Boolean).join(", ") : "";
    status.textContent = `${event[0]}: ${label(event)}${kernel ? ` ${kernel.shape}` : ""}, ${seconds(event[2] / 1e6)} ` +
      `from ${seconds(event[1] / 1e6)} on${calls ? `; ${calls}` : ""}`;
  }

  picture.element.parentElement.style.height = `${high}px`;
  picture.element.parentElement.style.minHeight = `${high}px`;
  return { element, shown: () => picture.redraw(), zoomTo: range };
}
