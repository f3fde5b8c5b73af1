// A graph on a canvas: only what is in view is drawn, and the layout of a large one is made in a worker.
import { layout } from "./layout.js";
import { Picture, color, fitted } from "./words.js";

const LINE = 16, PAD = 8;
let worker = null, asked = 0;
const waiting = new Map();

/** What takes less than the start of a worker is laid out at once: so many nodes and edges. */
const SMALL = 1500;

function laidOut(graph) {
  if (graph.size + graph.from.length <= SMALL) return layout(graph);
  if (!worker) {
    worker = new Worker("layout-worker.js", { type: "module" });
    worker.onmessage = ({ data }) => {
      waiting.get(data.number)(data);
      waiting.delete(data.number);
    };
  }
  const number = ++asked;
  return new Promise((resolve) => {
    waiting.set(number, resolve);
    worker.postMessage({ number, ...graph });
  });
}

/**
 * Nodes are `{ id, lines, kind, title }`: texts in a box coloured by kind ("box", "memory", "group").
 * `onselect(node)` is called for a click or the keys, `onopen(node)` for a double click or Enter.
 */
export class GraphView {
  constructor(label, { onselect, onopen }) {
    this.label = label;
    this.onselect = onselect;
    this.onopen = onopen;
    this.nodes = [];
    this.selected = -1;
    this.scale = 1;
    this.left = this.top = 0;
    this.picture = new Picture(label, (...where) => this.paint(...where));
    this.element = this.picture.element;
    this.element.setAttribute("role", "application");
    this.listen();
  }

  /** Show other nodes and edges `[from, to, text]` (places in the list); the promise ends when they are drawn. */
  async show(nodes, edges, keep = null) {
    const widths = nodes.map((node) => node.width ?? Math.min(240, 24 + 7 * Math.max(...node.lines.map((l) => l.length))));
    const heights = nodes.map((node) => PAD * 2 + LINE * node.lines.length);
    this.element.setAttribute("aria-busy", "true");
    const mine = this.latest = {};
    const found = await laidOut({
      size: nodes.length, from: edges.map((e) => e[0]), to: edges.map((e) => e[1]), widths, heights,
    });
    if (this.latest !== mine) return;
    Object.assign(this, { nodes, edges, widths, heights, x: found.x, y: found.y, rank: found.rank });
    this.place = new Map(nodes.map((node, at) => [node.id, at]));
    const layers = [];
    nodes.forEach((_, at) => (layers[found.rank[at]] ??= []).push(at));
    this.layers = layers.filter(Boolean).map((layer) => layer.sort((a, b) => found.x[a] - found.x[b]));
    this.selected = this.place.get(keep) ?? -1;
    if (this.selected >= 0) this.center(this.selected);
    else this.fit();
    this.element.dataset.nodes = nodes.length;
    this.element.dataset.edges = edges.length;
    this.element.setAttribute("aria-label", `${this.label}: ${nodes.length} nodes, ${edges.length} edges`);
    this.element.setAttribute("aria-busy", "false");
  }

  /** Show the whole graph, in a window of another size too, until somebody moves it. */
  fit() {
    this.fitted = { width: 0, height: 0, scale: 0, left: 0, top: 0 };
    this.picture.redraw();
    this.adjust(this.picture.width, this.picture.height);
  }

  adjust(width, height) {
    const last = this.fitted;
    if (!last || (last.width === width && last.height === height)) return;
    if (last.width && (last.scale !== this.scale || last.left !== this.left || last.top !== this.top)) return;
    let [x1, x2, y1, y2] = [0, 1, 0, 1];
    this.nodes.forEach((_, at) => {
      x1 = Math.min(x1, this.x[at] - this.widths[at] / 2);
      x2 = Math.max(x2, this.x[at] + this.widths[at] / 2);
      y1 = Math.min(y1, this.y[at] - this.heights[at] / 2);
      y2 = Math.max(y2, this.y[at] + this.heights[at] / 2);
    });
    const whole = Math.min((width || 800) / (x2 - x1 + 40), (height || 500) / (y2 - y1 + 40));
    // a graph that is too large to be read as a whole begins where it begins
    this.scale = Math.min(Math.max(whole, this.nodes.length > 400 ? 0.002 : 0.25), 1.2);
    this.left = (x1 + x2) / 2 - (width || 800) / 2 / this.scale;
    this.top = whole < this.scale ? y1 - 20 : (y1 + y2) / 2 - (height || 500) / 2 / this.scale;
    this.fitted = { width, height, scale: this.scale, left: this.left, top: this.top };
  }

  center(at) {
    this.scale = Math.max(this.scale, 0.8);
    this.left = this.x[at] - this.picture.width / 2 / this.scale;
    this.top = this.y[at] - this.picture.height / 2 / this.scale;
    this.picture.redraw();
  }

  /** Where a node is on the canvas. */
  screenOf(id) {
    const at = this.place.get(id);
    return [(this.x[at] - this.left) * this.scale, (this.y[at] - this.top) * this.scale];
  }

  select(at, center = true) {
    this.selected = at;
    if (center) this.center(at);
    this.picture.redraw();
    this.onselect(this.nodes[at]);
  }

  zoom(factor, atX = this.picture.width / 2, atY = this.picture.height / 2) {
    const x = this.left + atX / this.scale, y = this.top + atY / this.scale;
    this.scale = Math.min(Math.max(this.scale * factor, 0.002), 4);
    this.left = x - atX / this.scale;
    this.top = y - atY / this.scale;
    this.picture.redraw();
  }

  hit(px, py) {
    const x = this.left + px / this.scale, y = this.top + py / this.scale;
    for (const layer of this.layers ?? []) {
      for (const at of layer) {
        if (Math.abs(x - this.x[at]) <= this.widths[at] / 2 && Math.abs(y - this.y[at]) <= this.heights[at] / 2) return at;
      }
    }
    return -1;
  }

  listen() {
    const canvas = this.element, fingers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = [event.offsetX, event.offsetY], others = [...fingers].filter(([id]) => id !== event.pointerId);
      if (others.length) {
        const [ox, oy] = others[0][1], far = (p) => Math.hypot(p[0] - ox, p[1] - oy);
        this.zoom(far(now) / Math.max(far(before), 1), ox, oy);
      } else {
        this.left -= (now[0] - before[0]) / this.scale;
        this.top -= (now[1] - before[1]) / this.scale;
      }
      moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      fingers.set(event.pointerId, now);
      this.picture.redraw();
    });
    const up = (event) => fingers.delete(event.pointerId);
    canvas.addEventListener("pointerup", (event) => {
      up(event);
      const at = moved < 6 ? this.hit(event.offsetX, event.offsetY) : -1;
      if (at >= 0) this.select(at, false);
    });
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("dblclick", (event) => {
      const at = this.hit(event.offsetX, event.offsetY);
      if (at >= 0) this.onopen(this.nodes[at]);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 60 / this.scale, many = this.nodes.length;
      const keys = {
        ArrowLeft: () => { this.left -= step; }, ArrowRight: () => { this.left += step; },
        ArrowUp: () => { this.top -= step; }, ArrowDown: () => { this.top += step; },
        "+": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(),
        n: () => many && this.select((this.selected + 1) % many),
        p: () => many && this.select((this.selected - 1 + many) % many),
        Enter: () => this.selected >= 0 && this.onopen(this.nodes[this.selected]),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
      this.picture.redraw();
    });
  }

  paint(context, width, height) {
    this.adjust(width, height);
    const { scale, left, top } = this, right = left + width / scale, bottom = top + height / scale;
    context.translate(-left * scale, -top * scale);
    context.scale(scale, scale);
    this.paintEdges(context, left, top, right, bottom);
    let drawn = 0;
    const texts = scale > 0.3, colors = {};
    for (const kind of ["box", "memory", "group"]) colors[kind] = [color(kind), color(`${kind}-line`)];
    const ink = color("text"), chosen = color("select");
    for (const layer of this.layers ?? []) {
      const first = layer[0];
      if (this.y[first] + 400 < top || this.y[first] - 400 > bottom) continue;
      for (let n = firstFrom(layer, this.x, left - 140); n < layer.length; n++) {
        const at = layer[n], w = this.widths[at], h = this.heights[at];
        if (this.x[at] - w / 2 > right) break;
        const node = this.nodes[at], x = this.x[at] - w / 2, y = this.y[at] - h / 2;
        if (y > bottom || y + h < top) continue;
        drawn += 1;
        context.fillStyle = colors[node.kind][0];
        context.strokeStyle = at === this.selected ? chosen : colors[node.kind][1];
        context.lineWidth = at === this.selected ? 3 : 1;
        context.beginPath();
        context.roundRect(x, y, w, h, 6);
        context.fill();
        context.stroke();
        if (!texts) continue;
        context.fillStyle = ink;
        node.lines.forEach((line, row) => {
          context.font = `${row ? "" : "600 "}12px system-ui, sans-serif`;
          context.fillText(fitted(context, line, w - 2 * PAD), x + PAD, y + PAD + 11 + row * LINE);
        });
      }
    }
    this.element.dataset.drawn = drawn;
  }

  paintEdges(context, left, top, right, bottom) {
    const { x, y, heights, selected } = this, edges = this.edges ?? [];
    const plain = new Path2D(), marked = new Path2D(), texts = [], straight = edges.length > 5000;
    for (const [a, b, text] of edges) {
      const x1 = x[a], y1 = y[a] + heights[a] / 2, x2 = x[b], y2 = y[b] - heights[b] / 2;
      const span = this.rank[b] - this.rank[a], near = Math.abs(x1 - x2) < 160;
      // an edge past other layers bows to the side, so that it is seen beside what stands between
      const bow = span > 1 && near ? (a % 2 ? 1 : -1) * (170 + 14 * Math.min(span, 10)) : 0;
      if (Math.max(x1, x2, x1 + bow) < left || Math.min(x1, x2, x1 + bow) > right) continue;
      if (Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) continue;
      const path = a === selected || b === selected ? marked : plain;
      path.moveTo(x1, y1);
      if (straight) path.lineTo(x2, y2);
      else if (bow) path.bezierCurveTo(x1 + bow, y1, x2 + bow, y2, x2, y2);
      else path.bezierCurveTo(x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
      if (text && texts.length < 300) texts.push([text, (x1 + x2) / 2 + 0.75 * bow, (y1 + y2) / 2]);
    }
    context.lineWidth = 1.2;
    context.strokeStyle = color("edge");
    context.stroke(plain);
    context.strokeStyle = color("select");
    context.lineWidth = 2;
    context.stroke(marked);
    if (this.scale <= 0.45) return;
    context.fillStyle = color("soft");
    context.font = "10px system-ui, sans-serif";
    for (const [text, px, py] of texts) context.fillText(text, px + 4, py);
  }
}

/** The first place in a layer whose node is not left of `x`. */
function firstFrom(layer, x, least) {
  let low = 0, high = layer.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[layer[middle]] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
