// The inside of an arena: a box for each value in between, from the kernel that writes it to the last that reads it,
// as high as its bytes, at its offset. What lies in memory that an earlier value has had is drawn in another colour.
import { Picture, bytes, callText, color, count, fitted, make } from "./words.js";

const LEFT = 70, TOP = 22, BOTTOM = 6, MOST = 200;

export function arenasPart(recording, open) {
  const element = make("div", { id: "arenas" });
  const order = recording.arenas.map((_, n) => n).sort((a, b) => recording.arenas[b].bytes - recording.arenas[a].bytes);
  if (!order.length) {
    element.append(make("p", { class: "soft" }, "No values in between have shared memory."));
    return { element, shown: () => {} };
  }
  let arena, values, picked = -1;
  const summary = make("p", { id: "arena-summary", "aria-live": "polite" });
  const told = make("p", { class: "soft", id: "arena-value", "aria-live": "polite" });
  const body = make("tbody");
  const picture = new Picture("the values in an arena: kernels from left to right, offsets from top to bottom", paint);
  const choice = make("select", { id: "arena", "aria-label": "arena", onchange: () => choose(recording.arenas[choice.value]) },
    order.map((n) => make("option", { value: n }, nameOf(recording.arenas[n]))));
  element.append(make("div", { class: "bar" }, choice), summary, make("div", { class: "stage low" }, picture.element), told,
    make("table", { "aria-label": "values in the arena" },
      make("thead", {}, make("tr", {}, ["bytes", "offset", "kernels", "your line", "in the memory of"].map((t) => make("th", { scope: "col" }, t)))),
      body));

  function nameOf({ what, device, bytes: size, steps, times }) {
    return `arena of a ${what} of ${count(steps.length, "kernel")} on ${recording.names[device]}: ${bytes(size)}` +
      (times > 1 ? `, ${times} times` : "");
  }

  function choose(next) {
    [arena, picked] = [next, -1];
    values = arena.values.map(([first, last, offset, size, call]) => ({ first, last, offset, size, call, before: [] }));
    const inUse = new Array(arena.steps.length).fill(0);
    values.forEach((value, n) => {
      for (let step = value.first; step <= value.last; step++) inUse[step] += value.size;
      for (let m = 0; m < n; m++) {
        const other = values[m];
        if (other.last < value.first && other.offset < value.offset + value.size && value.offset < other.offset + other.size) value.before.push(m);
      }
    });
    const apart = values.reduce((sum, value) => sum + value.size, 0), most = Math.max(...inUse);
    summary.textContent = `${count(values.length, "value")} of ${bytes(apart)} lie in ${bytes(arena.bytes)}; ` +
      `${values.filter((value) => value.before.length).length} have the memory of earlier ones; at most ${bytes(most)} are in use at once` +
      `, so that ${bytes(arena.bytes - most)} are holes then`;
    told.textContent = "Point at a value; a click opens the kernel that writes it.";
    const largest = values.map((_, n) => n).sort((a, b) => values[b].size - values[a].size).slice(0, MOST);
    body.replaceChildren(...largest.map((n) => {
      const { first, last, offset, size, call, before } = values[n];
      return make("tr", {}, make("td", { class: "number" }, bytes(size)), make("td", { class: "number" }, offset.toLocaleString("en")),
        make("td", {}, kernelButton(first), last > first ? ` to ${last}` : ""), make("td", {}, callText(recording, call)),
        make("td", {}, before.length ? count(before.length, "earlier value") : ""));
    }));
    picture.element.dataset.values = values.length;
    picture.redraw();
  }

  function kernelButton(step) {
    const kernel = arena.steps[step];
    const name = kernel >= 0 ? `${step} ${recording.kernels[kernel].name}` : String(step);
    return kernel >= 0 ? make("button", { onclick: () => open("kernels", kernel) }, name) : name;
  }

  /** [x, y, width, height] of a value's box. */
  function place({ first, last, offset, size }) {
    const wide = (picture.width - LEFT) / arena.steps.length, high = (picture.height - TOP - BOTTOM) / arena.bytes;
    return [LEFT + first * wide, TOP + offset * high, (last - first + 1) * wide, Math.max(size * high, 1)];
  }

  function paint(context, width, height) {
    context.fillStyle = color("soft");
    context.fillText("0", 4, TOP + 10);
    context.fillText(bytes(arena.bytes), 4, height - BOTTOM);
    context.fillText("kernel 0", LEFT, 14);
    const end = `kernel ${arena.steps.length - 1}`;
    context.fillText(end, width - context.measureText(end).width - 4, 14);
    values.forEach((value, n) => {
      const [x, y, wide, high] = place(value), kind = value.before.length ? "group" : "box";
      context.fillStyle = color(kind);
      context.fillRect(x, y, wide, high);
      context.strokeStyle = color(n === picked ? "select" : `${kind}-line`);
      context.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 1, 1), Math.max(high - 1, 1));
      if (wide > 40 && high > 14) {
        context.fillStyle = color("text");
        context.fillText(fitted(context, `${bytes(value.size)} ${callText(recording, value.call)}`, wide - 8), x + 4, y + 12);
      }
    });
    context.strokeStyle = color("line");
    context.strokeRect(LEFT + 0.5, TOP + 0.5, width - LEFT - 1, height - TOP - BOTTOM);
  }

  function hit(event) {
    return values.findIndex((value) => {
      const [x, y, wide, high] = place(value);
      return x <= event.offsetX && event.offsetX < x + wide && y <= event.offsetY && event.offsetY < y + Math.max(high, 3);
    });
  }

  function pick(n) {
    if (n === picked) return;
    picked = n;
    if (n >= 0) {
      const { first, last, offset, size, call, before } = values[n];
      const earlier = before.map((m) => callText(recording, values[m].call) || `a value of kernel ${values[m].first}`);
      told.textContent = `${size.toLocaleString("en")} bytes at ${offset.toLocaleString("en")}, kernels ${first} to ${last}; ` +
        `${callText(recording, call)}${before.length ? `; before: ${[...new Set(earlier)].join(", ")}` : ""}`;
    }
    picture.redraw();
  }

  picture.element.addEventListener("pointermove", (event) => pick(hit(event)));
  picture.element.addEventListener("pointerup", (event) => {
    const n = hit(event), kernel = n >= 0 ? arena.steps[values[n].first] : -1;
    if (kernel >= 0) open("kernels", kernel);
  });
  picture.element.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) pick((picked + by + values.length) % values.length);
  });
  choose(recording.arenas[order[0]]);
  return { element, shown: () => picture.redraw(), middleOf: (n) => { const [x, y, wide, high] = place(values[n]); return [x + wide / 2, y + high / 2]; } };
}
