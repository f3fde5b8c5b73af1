// Memory over time, and what held it at the peak or at any moment: bytes, the kernel that wrote it, the user's line.
import { Picture, bytes, callText, color, count, make, seconds } from "./words.js";

const MOST = 200;

export function memoryView(recording, open) {
  const changes = [];
  recording.allocations.forEach(([begin, end, size]) => {
    changes.push([begin, size]);
    if (end !== null) changes.push([end, -size]);
  });
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const steps = [];
  let used = 0, peak = [0, 0];
  for (const [at, size] of changes) {
    used += size;
    steps.push([at, used]);
    if (used > peak[1]) peak = [at, used];
  }
  const end = Math.max(recording.made.wall * 1e6, steps.length ? steps.at(-1)[0] : 1, 1);
  let moment = peak[0];
  const body = make("tbody"), heading = make("h2", { id: "memory-at", "aria-live": "polite" });
  const picture = new Picture(`memory over time: ${bytes(peak[1])} at most`, paint);
  const slider = make("input", { type: "range", min: 0, max: 1000, "aria-label": "moment", oninput: () => show(end * slider.value / 1000) });
  const element = make("section", {},
    make("div", { class: "bar" }, make("button", { onclick: () => show(peak[0]) }, "at the peak"), slider),
    make("div", { class: "stage low" }, picture.element), heading,
    make("table", { "aria-label": "memory at that moment" },
      make("thead", {}, make("tr", {}, ["bytes", "device", "written by", "your line", "lives"].map((t) => make("th", { scope: "col" }, t)))),
      body));

  function show(at) {
    moment = at;
    slider.value = Math.round(1000 * at / end);
    const alive = recording.allocations.filter(([begin, until]) => begin <= at && (until === null || until > at));
    alive.sort((a, b) => b[2] - a[2]);
    const all = alive.reduce((sum, row) => sum + row[2], 0);
    heading.textContent = `${bytes(all)} in ${count(alive.length, "allocation")} after ${seconds(at / 1e6)}${at === peak[0] ? " (the peak)" : ""}`;
    body.replaceChildren(...alive.slice(0, MOST).map(([begin, until, size, device, kernel, call]) => make("tr", {},
      make("td", { class: "number" }, bytes(size)), make("td", {}, recording.names[device]),
      make("td", {}, kernel >= 0 ? make("button", { onclick: () => open("kernels", kernel) }, recording.kernels[kernel].name) : "arena, data or a replay"),
      make("td", {}, call >= 0 ? callText(recording, call) : ""),
      make("td", {}, until === null ? `from ${seconds(begin / 1e6)} to the end` : `for ${seconds((until - begin) / 1e6)}`))));
    picture.redraw();
  }

  function paint(context, width, height) {
    const px = (t) => width * t / end, py = (v) => height - 6 - (height - 30) * v / Math.max(peak[1], 1);
    context.beginPath();
    context.moveTo(0, py(0));
    let before = 0;
    for (const [at, now] of steps) {
      context.lineTo(px(at), py(before));
      context.lineTo(px(at), py(now));
      before = now;
    }
    context.lineTo(width, py(before));
    context.lineTo(width, py(0));
    context.fillStyle = color("box");
    context.fill();
    context.strokeStyle = color("box-line");
    context.stroke();
    context.fillStyle = color("text");
    context.fillText(`${bytes(peak[1])} at most`, 6, 16);
    context.fillStyle = color("select");
    context.fillRect(px(moment) - 1, 20, 2, height - 20);
  }

  picture.element.addEventListener("pointerup", (event) => show(end * event.offsetX / picture.width));
  show(moment);
  return { element, shown: () => picture.redraw(), peak: peak[1] };
}
