// The page: loads the recording, makes each view when it is first asked for, searches.
import { callText, count, make, seconds } from "./words.js";

/** [name, label, how it is loaded, parts of the recording that it needs besides the first one] */
const VIEWS = [
  ["schedule", "Schedule", async () => (await import("./schedule.js")).scheduleView, []],
  ["planning", "Planning", async () => (await import("./planning.js")).planningView, []],
  ["tensors", "Tensors", async () => (await import("./tensors.js")).tensorsView, ["graphs"]],
  ["kernels", "Kernels", async () => (await import("./kernels.js")).kernelsView, []],
  ["timeline", "Timeline", async () => (await import("./timeline.js")).timelineView, ["events", "allocations"]],
  ["memory", "Memory", async () => (await import("./memory.js")).memoryView, ["events", "allocations", "arenas"]],
  ["training", "Training", async () => (await import("./training.js")).trainingView, []],
];
const MOST_FOUND = 60;
const made = {}, tabs = {}, asked = {};
const status = document.getElementById("status"), main = document.getElementById("main");
let recording = null, shown = "";

async function json(where) {
  const answer = await fetch(where);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** Load parts of the recording that are not here yet. */
function load(parts) {
  return Promise.all(parts.map((part) => (asked[part] ??= json(`parts/${part}.json`).then((found) => { recording[part] = found; }))));
}

/** Make a view once, however often it is asked for. */
async function prepare(name) {
  const [, , module, parts] = VIEWS.find(([each]) => each === name);
  const [view] = await Promise.all([module(), load(parts)]);
  made[name] = view(recording, open);
  const { element } = made[name];
  element.setAttribute("role", "tabpanel");
  element.setAttribute("aria-labelledby", `tab-${name}`);
  element.id = `view-${name}`;
  element.hidden = true;
  main.append(element);
}

/** Show a view; `what` is a kernel's number, or [graph, node]. */
async function open(name, what = null) {
  shown = name;
  for (const [each] of VIEWS) {
    tabs[each].setAttribute("aria-selected", String(each === name));
    tabs[each].tabIndex = each === name ? 0 : -1;
  }
  await (asked[`view ${name}`] ??= prepare(name));
  if (shown !== name) return; // another one was asked for meanwhile
  for (const [each] of VIEWS) if (made[each]) made[each].element.hidden = each !== name;
  history.replaceState(null, "", `#${name}`);
  if (what === null) await made[name].shown();
  else await made[name].reveal(...[what].flat());
}

function addTabs() {
  const list = document.getElementById("tabs");
  for (const [name, label] of VIEWS) {
    tabs[name] = make("button", { role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, onclick: () => open(name) }, label);
    list.append(tabs[name]);
  }
  list.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = VIEWS.findIndex(([name]) => tabs[name] === document.activeElement);
    const [next] = VIEWS[(at + by + VIEWS.length) % VIEWS.length];
    tabs[next].focus();
    open(next);
  });
}

/** Kernels and nodes of which a text says something: name, op, shape, layer, the user's call. */
function find(text) {
  const wanted = text.toLowerCase().trim(), found = [];
  if (!wanted) return found;
  for (const kernel of recording.kernels) {
    const told = [kernel.name, kernel.shape, ...kernel.calls.map((n) => callText(recording, n))].join(" ");
    if (told.toLowerCase().includes(wanted)) found.push([`kernel ${kernel.name} ${kernel.shape}`, "kernels", kernel.number]);
    if (found.length >= MOST_FOUND) return found;
  }
  for (let n = 0; n < recording.graphs.length; n++) {
    const nodes = recording.graphs[n].nodes;
    for (let at = 0; at < nodes.length && found.length < MOST_FOUND; at++) {
      const [op, dtype, shape, , , argument, call, layer] = nodes[at];
      const told = [op, dtype, shape, argument, layer >= 0 ? recording.names[layer] : "", callText(recording, call)].join(" ");
      if (told.toLowerCase().includes(wanted)) {
        const where = [layer >= 0 ? recording.names[layer] : "", callText(recording, call)].filter(Boolean).join(", ");
        found.push([`${op} ${shape} ${where}`, "tensors", [n, at]]);
      }
    }
  }
  return found;
}

function addSearch() {
  const input = document.getElementById("search"), list = document.getElementById("found");
  const close = () => { list.hidden = true; };
  input.addEventListener("focus", () => load(["graphs"]));
  input.addEventListener("input", async () => {
    await load(["graphs"]);
    const found = find(input.value);
    list.replaceChildren(...found.map(([told, view, what]) =>
      make("li", {}, make("button", { onclick: () => { close(); open(view, what); } }, told))));
    if (!found.length && input.value) list.replaceChildren(make("li", {}, "nothing"));
    list.hidden = !input.value;
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("button")?.click();
    if (event.key === "ArrowDown") list.querySelector("button")?.focus();
  });
  list.addEventListener("keydown", (event) => {
    const item = document.activeElement.closest("li");
    const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key];
    if (next) next.querySelector("button")?.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
}

async function begin() {
  recording = await json("recording.json");
  document.title = `${recording.made.script} — lazygrad`;
  document.getElementById("title").textContent = recording.made.script || "lazygrad";
  addTabs();
  addSearch();
  globalThis.viewer = { recording, views: made, open };
  const wanted = location.hash.slice(1);
  await open(VIEWS.some(([name]) => name === wanted) ? wanted : recording.logs.length && !recording.items.length ? "training" : "schedule");
  const left = Object.entries(recording.left_out).map(([what, many]) => `${many.toLocaleString("en")} ${what}`);
  status.textContent = `${count(recording.kernels.length, "kernel")}, ${count(recording.counts.events, "event")}, ` +
    `${count(recording.counts.graphs, "graph")} in ${seconds(recording.made.wall)} on ${recording.made.machine}` +
    (left.length ? `; not recorded, since there were too many: ${left.join(", ")}` : "");
}

begin().catch((error) => { status.textContent = `The recording cannot be shown: ${error.message}`; });
