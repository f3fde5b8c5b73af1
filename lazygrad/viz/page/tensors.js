// The tensor graph, folded by layer, line and call of the user; a click on a group unfolds it.
import { GraphView } from "./graph.js";
import { bytes, callElement, count, facts, make } from "./words.js";

const OP = 0, DTYPE = 1, SHAPE = 2, BYTES = 3, DEVICE = 4, ARGUMENT = 5, CALL = 6, LAYER = 7, SOURCES = 8;

export function tensorsView(recording) {
  const side = make("aside", { class: "side", "aria-label": "the node that is selected", "aria-live": "polite" });
  const summary = make("span", { class: "soft", id: "tensors-summary" });
  const view = new GraphView("tensor graph", { onselect: tell, onopen: (node) => node.group && unfold(node.id) });
  const choice = make("select", { "aria-label": "which graph", onchange: () => choose(Number(choice.value)) });
  recording.graphs.forEach((graph, n) => {
    choice.append(make("option", { value: n }, `graph ${n}: ${count(graph.nodes.length, "node")}`));
  });
  // what has most in layers is first; without layers, what has most nodes
  const worth = recording.graphs.map((each) => each.nodes.filter((row) => row[LAYER] >= 0).length * 1e6 + each.nodes.length);
  const largest = worth.reduce((best, value, n) => (value >= worth[best] ? n : best), 0);
  let graph = null, number = largest, paths = [], open = new Set();
  const element = make("section", {},
    make("div", { class: "bar" }, choice,
      make("button", { onclick: () => { open = new Set(); show(); } }, "fold all"),
      make("button", { onclick: () => { open = new Set(paths.flat()); show(); } }, "unfold all"),
      make("button", { onclick: () => view.fit() }, "fit"), summary),
    make("div", { class: "split" }, make("div", { class: "stage" }, view.element), side));

  function choose(n) {
    number = n;
    choice.value = n;
    graph = recording.graphs[n];
    const known = new Map();
    paths = graph.nodes.map((row) => {
      const key = `${row[LAYER]} ${row[CALL]}`;
      if (!known.has(key)) known.set(key, groupsOf(row));
      return known.get(key);
    });
    open = new Set();
    return show();
  }

  /** The groups that a node is in, the outermost first: parts of its layer's path, the line, the call. */
  function groupsOf(row) {
    const found = [];
    let path = "";
    const layer = row[LAYER] >= 0 ? recording.names[row[LAYER]] : "";
    for (const part of layer ? layer.split(".") : []) {
      path = path ? `${path}.${part}` : part;
      found.push(`layer ${path}`);
    }
    if (row[CALL] >= 0) {
      const [name, line] = recording.calls[row[CALL]];
      if (line) found.push(`${layer ? `${layer}: ` : ""}line ${line}`);
      found.push(`${layer ? `${layer}: ` : ""}${name}${line ? ` at ${line}` : ""}`);
    }
    return found;
  }

  /** What stands for each node: the outermost group that is folded, or the node itself. */
  function show(keep = null) {
    const place = new Map(), nodes = [], stands = new Int32Array(graph.nodes.length);
    graph.nodes.forEach((row, at) => {
      const group = paths[at].find((each) => !open.has(each));
      const id = group ?? at;
      if (!place.has(id)) {
        place.set(id, nodes.length);
        nodes.push(group === undefined ? single(row, at) : { id, group: true, members: [], kind: "group", lines: [] });
      }
      stands[at] = place.get(id);
      nodes[stands[at]].members?.push(at);
    });
    for (const node of nodes) if (node.group) node.lines = groupLines(node);
    const seen = new Set(), edges = [];
    graph.nodes.forEach((row, at) => {
      for (const source of row[SOURCES]) {
        const [a, b] = [stands[source], stands[at]], key = a * nodes.length + b;
        if (a === b || seen.has(key)) continue;
        seen.add(key);
        edges.push([a, b, bytes(graph.nodes[source][BYTES])]);
      }
    });
    const left = graph.left_out ? `, ${graph.left_out.toLocaleString("en")} left out` : "";
    summary.textContent = `${count(graph.nodes.length, "node")} as ${nodes.length.toLocaleString("en")}${left}`;
    side.replaceChildren(make("p", { class: "soft" },
      "A green box is a group: a double click or Enter unfolds it. Click a node to see what it is."));
    return view.show(nodes, edges, keep);
  }

  function single(row, at) {
    const memory = row[OP].startsWith("BUFFER");
    return {
      id: at, kind: memory ? "memory" : "box",
      lines: [row[OP] + (row[ARGUMENT] ? `  ${row[ARGUMENT]}` : ""), `${row[DTYPE]} ${row[SHAPE]}`],
    };
  }

  function groupLines(node) {
    const ops = new Map();
    for (const at of node.members) ops.set(graph.nodes[at][OP], (ops.get(graph.nodes[at][OP]) ?? 0) + 1);
    const most = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([op, times]) => (times > 1 ? `${op}×${times}` : op));
    const last = graph.nodes[node.members.at(-1)];
    return [node.id, `${count(node.members.length, "node")}: ${most.join(" ")}`, `gives ${last[DTYPE]} ${last[SHAPE]}`];
  }

  function unfold(group) {
    open.add(group);
    return show();
  }

  function tell(node) {
    if (node.group) {
      side.replaceChildren(make("h2", {}, node.id),
        make("button", { onclick: () => unfold(node.id) }, "unfold"),
        facts([["nodes", node.members.length], ["inside", node.lines[1]], ["result", node.lines[2]]]));
      return;
    }
    const row = graph.nodes[node.id], inside = paths[node.id];
    const reads = row[SOURCES].map((at) => {
      const source = graph.nodes[at];
      return make("li", {}, make("button", { onclick: () => reveal(number, at) }, `${source[OP]} ${source[SHAPE]}`));
    });
    side.replaceChildren(
      make("h2", {}, row[OP]),
      inside.length ? make("button", { onclick: () => { open.delete(inside.at(-1)); show(inside.at(-1)); } }, "fold its call") : "",
      facts([
        ["shape", row[SHAPE]], ["dtype", row[DTYPE]], ["device", row[DEVICE]], ["bytes", row[BYTES].toLocaleString("en")],
        ["argument", row[ARGUMENT]], ["layer", row[LAYER] >= 0 ? recording.names[row[LAYER]] : ""],
      ]),
      row[CALL] >= 0 ? callElement(recording, row[CALL]) : "",
      make("h2", {}, "reads"), make("ul", {}, reads));
  }

  /** Show a node of a graph, whatever is folded. */
  async function reveal(n, at = -1) {
    if (n !== number || !graph) await choose(n);
    if (at < 0) return;
    for (const group of paths[at]) open.add(group);
    await show(at);
    view.select(view.place.get(at));
  }

  return {
    element, view, reveal,
    shown: () => (graph ? view.picture.redraw() : recording.graphs.length && choose(largest)),
  };
}
