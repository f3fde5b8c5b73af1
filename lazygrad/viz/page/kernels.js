// Kernels: a table of all, and of one its forms and rewrites, its loops under each Opt, its texts, its place on the
// roofline.
import { stepsSection } from "./steps.js";
import { loopsAndTexts } from "./texts.js";
import { bytes, callElement, count, draw, facts, make, rate, seconds } from "./words.js";

export function kernelsView(recording) {
  const side = make("div", { class: "panel", "aria-label": "the kernel that is selected" });
  const body = make("tbody");
  const columns = [
    ["kernel", (k) => k.name], ["shape", (k) => k.shape], ["runs", (k) => k.runs], ["best", (k) => k.best],
    ["all runs", (k) => k.seconds], ["per second", (k) => (k.best ? k.accessed / k.best : 0)],
  ];
  const head = make("tr", {}, columns.map(([name, of], n) => make("th", { class: n > 1 ? "number" : null, scope: "col" },
    make("button", { onclick: () => fill(of) }, name))));
  const element = make("section", {},
    make("div", { class: "split kernels" },
      make("div", { class: "panel" }, make("table", { "aria-label": "kernels" }, make("thead", {}, head), body)), side));
  let selected = -1;

  function fill(of) {
    const rows = [...recording.kernels].sort((a, b) => (of(a) < of(b) ? 1 : of(a) > of(b) ? -1 : a.number - b.number));
    body.replaceChildren(...rows.map((kernel) => make("tr", { "data-kernel": kernel.number },
      make("td", {}, make("button", { onclick: () => reveal(kernel.number) }, kernel.name)),
      make("td", {}, kernel.shape), make("td", { class: "number" }, kernel.runs),
      make("td", { class: "number" }, seconds(kernel.best)), make("td", { class: "number" }, seconds(kernel.seconds)),
      make("td", { class: "number" }, kernel.best ? rate(kernel.accessed / kernel.best, "B") : ""))));
    mark();
  }

  function mark() {
    for (const row of body.children) row.setAttribute("aria-selected", String(Number(row.dataset.kernel) === selected));
  }

  async function reveal(number) {
    selected = number;
    mark();
    const kernel = recording.kernels[number];
    const parts = [
      make("h2", { id: "kernel-name" }, `${kernel.name} ${kernel.shape}`),
      facts([
        ["device", kernel.device], ["runs", kernel.runs ? `${kernel.runs} one by one` : "only as a part of replays"],
        ["time", kernel.runs ? `${seconds(kernel.best)} at best, ${seconds(kernel.seconds)} in all` : ""],
        ["operations", kernel.best ? `${kernel.ops.toLocaleString("en")}, ${rate(kernel.ops / kernel.best, "/s")}` : kernel.ops],
        ["touches", bytes(kernel.accessed)],
      ]),
      ...kernel.calls.filter((n) => n >= 0).map((n) => callElement(recording, n)),
    ];
    side.replaceChildren(...parts);
    const roof = roofline(recording, kernel);
    if (roof) side.append(roof);
    if (!kernel.has_details) {
      side.append(make("p", { class: "soft" }, "The recording has no forms of this one: it is a copy or a loop over " +
        "time, or the time for looking at kernels (--seconds) was over."));
      return;
    }
    const details = await (await fetch(`kernels/${number}.json`)).json();
    if (selected !== number) return;
    if (details.cycles !== null) {
      side.append(facts([
        ["predicted", `${details.cycles.toLocaleString("en")} cycles` +
          (kernel.best ? `; at its best time that is ${(details.cycles / kernel.best / 1e9).toPrecision(3)} GHz` : "")],
        ["launch", details.launch ? `grid ${details.launch[0]}, workgroup ${details.launch[1]}` : ""],
      ]));
    }
    side.append(stepsSection(details, ""), ...loopsAndTexts(details));
  }

  fill((k) => k.seconds);
  return { element, reveal, shown: () => selected < 0 && recording.kernels.length && reveal(longest(recording)) };
}

function longest(recording) {
  return recording.kernels.reduce((best, k) => (k.seconds > recording.kernels[best].seconds ? k.number : best), 0);
}

/** Operations a second over operations a byte: where the kernel is below what its device can do. */
function roofline(recording, kernel) {
  const known = recording.rooflines?.[kernel.device];
  if (!known || !kernel.best || !kernel.ops || !kernel.accessed) return null;
  const held = known.caches.find(([size]) => kernel.accessed <= size), band = held ? held[1] : known.memory;
  const dense = kernel.ops / kernel.accessed, reached = kernel.ops / kernel.best;
  const width = 320, height = 160, low = Math.min(dense, 0.05) / 2, high = Math.max(dense, known.ops / band) * 10;
  const most = Math.log10(known.ops * 2), least = Math.log10(Math.min(reached, low * band) / 2);
  const px = (v) => (34 + (width - 44) * Math.log(v / low) / Math.log(high / low)).toFixed(1);
  const py = (v) => (10 + (height - 30) * (most - Math.log10(v)) / (most - least)).toFixed(1);
  const bend = known.ops / band, limit = Math.min(known.ops, dense * band);
  const svg = draw("svg", { width, height, role: "img", id: "roofline", "aria-label":
    `roofline: ${rate(reached, "operations/s")} of ${rate(limit, "operations/s")} that are possible` });
  svg.append(
    draw("path", { d: `M${px(low)} ${py(low * band)}L${px(bend)} ${py(known.ops)}L${px(high)} ${py(known.ops)}`, fill: "none", stroke: "currentColor" }),
    draw("circle", { cx: px(dense), cy: py(reached), r: 5, fill: "currentColor" }),
    draw("text", { x: 36, y: height - 4 }, `${dense.toPrecision(3)} operations a byte: ${(100 * reached / limit).toPrecision(3)}% of what is possible`));
  return make("figure", {}, svg, make("figcaption", { class: "soft" },
    `${held ? `from a cache of ${bytes(held[0])}` : "from memory"}: ${rate(band, "B/s")}; at most ${rate(known.ops, "operations/s")}`));
}
