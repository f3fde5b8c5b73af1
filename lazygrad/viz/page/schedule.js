// The schedule: the kernels of a plan as boxes, what they read from each other, and why each ends where it does.
import { GraphView } from "./graph.js";
import { bytes, callElement, callText, count, facts, make, seconds } from "./words.js";

export function scheduleView(recording, open) {
  const plans = new Map();
  for (const item of recording.items) {
    if (!plans.has(item.plan)) plans.set(item.plan, []);
    plans.get(item.plan).push(item);
  }
  const numbers = [...plans.keys()];
  const largest = numbers.reduce((best, n) => (plans.get(n).length >= plans.get(best).length ? n : best), numbers[0]);
  const side = make("aside", { class: "side", "aria-label": "the kernel that is selected", "aria-live": "polite" });
  const summary = make("span", { class: "soft", id: "schedule-summary" });
  const view = new GraphView("schedule", {
    onselect: (node) => tell(node.item),
    onopen: (node) => open("kernels", node.item.kernel),
  });
  const choice = make("select", { "aria-label": "which plan", onchange: () => show(Number(choice.value)) });
  for (const n of numbers) {
    choice.append(make("option", { value: n, selected: n === largest }, `plan ${n}: ${count(plans.get(n).length, "kernel")}`));
  }
  const passes = make("button", { onclick: () => open("planning", planned(Number(choice.value))) }, "how it was planned");
  const element = make("section", {},
    make("div", { class: "bar" }, choice, make("button", { onclick: () => view.fit() }, "fit"), passes, summary),
    make("div", { class: "split" }, make("div", { class: "stage" }, view.element), side));

  /** Which of the recorded plannings is that of a plan; -1 if none is. */
  function planned(number) {
    return (recording.plans ?? []).findIndex((plan) => plan.plans.includes(number));
  }

  function show(number) {
    passes.disabled = planned(number) < 0;
    const items = plans.get(number) ?? [], writer = new Map(), edges = [];
    const nodes = items.map((item, at) => {
      const kernel = recording.kernels[item.kernel];
      const outside = item.reads.filter(([memory]) => !writer.has(memory));
      item.outside = outside.length;
      for (const [memory, size] of item.reads) {
        if (writer.has(memory)) edges.push([writer.get(memory), at, bytes(size)]);
      }
      for (const [memory] of item.writes) writer.set(memory, at);
      const does = kernel.does.map(([op, times]) => (times > 1 ? `${op}×${times}` : op)).join(" ");
      const calls = kernel.calls.filter((n) => n >= 0).map((n) => recording.calls[n][0]).reverse();
      const written = item.writes.reduce((sum, [, size]) => sum + size, 0);
      return {
        id: at, item, kind: kernel.kind === "copy" ? "memory" : "box", width: 240,
        lines: [
          `${kernel.name}  ${kernel.shape}`, does || "copies", `${calls.join(" + ") || "—"}  ${seconds(kernel.best)}`,
          `stores ${bytes(written)}${item.ends.length ? `: ${item.ends[0][0]}` : ""}`,
        ],
      };
    });
    const total = items.reduce((sum, item) => sum + recording.kernels[item.kernel].best, 0);
    summary.textContent = `${count(nodes.length, "kernel")}, ${count(edges.length, "edge")}, ${seconds(total)} in all`;
    side.replaceChildren(make("p", { class: "soft" },
      "Select a kernel: click it, or n and p on the picture. A double click or Enter opens it."));
    return view.show(nodes, edges);
  }

  function tell(item) {
    const kernel = recording.kernels[item.kernel];
    const ends = item.ends.map(([reason, readers, call], n) => make("li", {},
      `${count(item.sizes[n]?.[0] ?? 0, "element")} of ${item.sizes[n]?.[1] ?? "?"}: ${reason}; ` +
      `${bytes((item.sizes[n]?.[2] ?? 0) * (1 + readers))} through memory` +
      (readers ? `, read by ${count(readers, "kernel")}` : ""),
      call >= 0 ? callElement(recording, call) : null, whatIf(recording, item, n)));
    const kept = item.kept.map(([size, call]) =>
      make("li", {}, `a row of ${bytes(size)} stays in the kernel ${callText(recording, call)}`));
    side.replaceChildren(
      make("h2", {}, `${kernel.name} ${kernel.shape}`),
      make("button", { onclick: () => open("kernels", item.kernel) }, "open the kernel"),
      facts([
        ["device", kernel.device], ["time", `${seconds(kernel.best)} at best of ${kernel.runs}`],
        ["operations", kernel.ops.toLocaleString("en")], ["touches", bytes(kernel.accessed)],
        ["reads", `${item.reads.length} (${item.outside} from outside of this plan)`],
        ["does", kernel.does.map(([op, times]) => `${op}×${times}`).join(" ")],
      ]),
      make("h2", {}, "why it ends there"), make("ul", {}, ends, kept),
      make("h2", {}, "your calls"), ...kernel.calls.filter((n) => n >= 0).map((n) => callElement(recording, n)));
  }

  /** Show a plan. */
  function reveal(number) {
    choice.value = number;
    return show(number);
  }

  return { element, view, reveal, shown: () => (view.nodes.length ? view.picture.redraw() : numbers.length && show(largest)) };
}

/** What a plan would be without a boundary: the words of what would have to be otherwise, and both predictions. */
function whatIf(recording, item, n) {
  const found = recording.without?.[item.without?.[n] ?? -1];
  if (!found) return null;
  if (found.refused) {
    return make("p", { class: "what-if" }, make("strong", {}, "cannot be fused: "), found.wanted ? `${found.wanted}, ${found.refused}` : found.refused);
  }
  const [gone, come] = found.kernels;
  const both = ([now, then], text) => `${text(now)} now, ${text(then)} then`;
  const whole = (number) => number.toLocaleString("en");
  const rows = [["kernels", `${whole(come)} instead of ${whole(gone)}`]];
  let verdict = "nobody has predicted the time";
  if (found.cycles) {
    const [now, then] = found.cycles, again = found.operations[1] - found.operations[0], saved = found.bytes[0] - found.bytes[1];
    verdict = then < now ? "would be faster, by the prediction" : then > now ? "would be slower, by the prediction" : "would take the same, by the prediction";
    rows.push(["predicted", both(found.cycles, (cycles) => `${whole(cycles)} cycles`)]);
    if (found.seconds) rows.push(["from the time measured", both(found.seconds, seconds)]);
    rows.push(["operations", again >= 0 ? `${whole(again)} more: computed again` : `${whole(-again)} fewer`]);
    rows.push(["memory touched", saved >= 0 ? `${bytes(saved)} less` : `${bytes(-saved)} more`]);
  }
  return make("details", { class: "what-if", open: true }, make("summary", {}, `fused ${found.wanted}: ${verdict}`), facts(rows));
}
