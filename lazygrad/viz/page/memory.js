// Memory over time, and what held it at the peak or at any moment: bytes, what it is, the kernel that wrote it, the
// user's line; what of it was not used any more; the inside of arenas.
import { arenasPart } from "./arenas.js";
import { Picture, bytes, callText, color, count, make, seconds } from "./words.js";

const MOST = 200;

export function memoryView(recording, open) {
  const changes = [];
  recording.allocations.forEach(([begin, end, size]) => {
    changes.push([begin, size]);
    if (end !== null) changes.push([end, -size]);
  });
  const [steps, peak] = overTime(changes);
  const spared = overTime(recording.allocations.flatMap(([begin, until, size, , , , , , last]) =>
    (last === null ? [] : [[begin, size], [until === null ? last : Math.min(last, until), -size]])))[1][1];
  const end = Math.max(recording.made.wall * 1e6, steps.length ? steps.at(-1)[0] : 1, 1);
  let moment = peak[0];
  const unused = make("tbody"), unusedTold = make("p", { id: "unused-told", "aria-live": "polite" });
  const arenas = arenasPart(recording, open);
  const body = make("tbody"), heading = make("h2", { id: "memory-at", "aria-live": "polite" });
  const picture = new Picture(`memory over time: ${bytes(peak[1])} at most`, paint);
  const slider = make("input", { type: "range", min: 0, max: 1000, "aria-label": "moment", oninput: () => show(end * slider.value / 1000) });
  const element = make("section", {},
    make("div", { class: "bar" }, make("button", { onclick: () => show(peak[0]) }, "at the peak"), slider),
    make("div", { class: "stage low" }, picture.element), heading,
    make("table", { "aria-label": "memory at that moment" },
      make("thead", {}, make("tr", {}, ["bytes", "device", "what it is", "written by", "your line", "held by", "lives"].map((t) => make("th", { scope: "col" }, t)))),
      body),
    make("h2", {}, "What could be freed earlier"), unusedTold,
    make("table", { "aria-label": "memory that is not used any more", id: "unused" },
      make("thead", {}, make("tr", {}, ["bytes", "what it is", "your line", "held by", "last used by", "unused for"].map((t) => make("th", { scope: "col" }, t)))),
      unused),
    make("h2", {}, "Arenas"), arenas.element);

  function show(at) {
    moment = at;
    slider.value = Math.round(1000 * at / end);
    const alive = recording.allocations.filter(([begin, until]) => begin <= at && (until === null || until > at));
    alive.sort((a, b) => b[2] - a[2]);
    const all = alive.reduce((sum, row) => sum + row[2], 0);
    heading.textContent = `${bytes(all)} in ${count(alive.length, "allocation")} after ${seconds(at / 1e6)}${at === peak[0] ? " (the peak)" : ""}`;
    body.replaceChildren(...alive.slice(0, MOST).map((row) => {
      const [begin, until, size, device, kernel, , kind] = row;
      return make("tr", {},
        make("td", { class: "number" }, bytes(size)), make("td", {}, recording.names[device]), make("td", {}, recording.names[kind]),
        make("td", {}, user(kernel)), make("td", {}, lineOf(row)), make("td", {}, holder(row)),
        make("td", {}, until === null ? `from ${seconds(begin / 1e6)} to the end` : `for ${seconds((until - begin) / 1e6)}`));
    }));
    const idle = alive.filter((row) => row[8] === null || row[8] < at);
    const most = idle.reduce((sum, row) => sum + row[2], 0);
    unusedTold.textContent = idle.length ? `${bytes(most)} in ${count(idle.length, "allocation")} are there that nothing has used afterwards; ` +
      `if each were freed after its last use, there would be ${bytes(spared)} at the peak, not ${bytes(peak[1])}.`
      : "Everything that is there is used afterwards.";
    unused.replaceChildren(...idle.slice(0, MOST).map((row) => make("tr", {},
      make("td", { class: "number" }, bytes(row[2])), make("td", {}, recording.names[row[6]]), make("td", {}, lineOf(row)), make("td", {}, holder(row)),
      make("td", {}, row[8] === null ? "nothing" : user(row[9])),
      make("td", {}, seconds(((row[1] ?? end) - (row[8] ?? row[0])) / 1e6)))));
    picture.redraw();
  }

  const lineOf = (row) => callText(recording, row[5] >= 0 && recording.calls[row[5]][1] ? row[5] : row[7] >= 0 ? row[7] : row[5]);
  const holder = (row) => (row[10] >= 0 ? recording.names[row[10]] : "");

  /** What used a block: a kernel, a replay. */
  function user(number) {
    if (number >= 0) return make("button", { onclick: () => open("kernels", number) }, recording.kernels[number].name);
    return number <= -2 ? `a replay of ${recording.captures[-2 - number].name || "a capture"}` : "";
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
  return { element, arenas, peak: peak[1], spared, at: () => moment, shown: () => { picture.redraw(); arenas.shown(); } };
}

/** [[moment, bytes in use], ...] and the first moment with the most, of [moment, change] in any order. */
function overTime(changes) {
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const steps = [];
  let used = 0, peak = [0, 0];
  for (const [at, size] of changes) {
    used += size;
    steps.push([at, used]);
    if (used > peak[1]) peak = [at, used];
  }
  return [steps, peak];
}
