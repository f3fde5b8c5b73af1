// A layered layout: each node is below all that it reads, nodes of a layer are ordered so that few edges cross.
//
// In: the number of nodes, edges as two lists of numbers, widths and heights. Out: the centres, and the layer of
// each. Time grows with nodes and edges (and their logarithm), so that 100,000 nodes take seconds, in a worker.

const GAP_X = 26, GAP_Y = 46, SWEEPS = 6, SHIFTS = 6;

export function layout({ size, from, to, widths, heights }) {
  const { out, into } = adjacency(size, from, to);
  const rank = ranks(size, out, into);
  const layers = [];
  for (let node = 0; node < size; node++) (layers[rank[node]] ??= []).push(node);
  for (let number = 0; number < layers.length; number++) layers[number] ??= [];
  order(layers, size, out, into);
  const x = columns(layers, size, out, into, widths), y = new Float64Array(size);
  let top = 0;
  for (const layer of layers) {
    const high = layer.reduce((most, node) => Math.max(most, heights[node]), 0);
    for (const node of layer) y[node] = top + high / 2;
    if (layer.length) top += high + GAP_Y;
  }
  return { x, y, rank };
}

/** The neighbours of each node, without edges that close a circle. */
function adjacency(size, from, to) {
  const all = Array.from({ length: size }, () => []);
  for (let n = 0; n < from.length; n++) if (from[n] !== to[n]) all[from[n]].push(to[n]);
  const out = Array.from({ length: size }, () => []), into = Array.from({ length: size }, () => []);
  const state = new Uint8Array(size), next = new Uint32Array(size);
  for (let start = 0; start < size; start++) {
    if (state[start]) continue;
    const stack = [start];
    state[start] = 1;
    while (stack.length) {
      const node = stack[stack.length - 1];
      if (next[node] === all[node].length) {
        state[node] = 2;
        stack.pop();
        continue;
      }
      const other = all[node][next[node]++];
      if (state[other] === 1) continue; // it leads back
      out[node].push(other);
      into[other].push(node);
      if (!state[other]) {
        state[other] = 1;
        stack.push(other);
      }
    }
  }
  return { out, into };
}

/** The layer of each node: below all that it reads; what reads nothing is right above what reads it first. */
function ranks(size, out, into) {
  const rank = new Int32Array(size), missing = into.map((sources) => sources.length);
  const ready = [];
  for (let node = 0; node < size; node++) if (!missing[node]) ready.push(node);
  for (let at = 0; at < ready.length; at++) {
    for (const other of out[ready[at]]) {
      rank[other] = Math.max(rank[other], rank[ready[at]] + 1);
      if (--missing[other] === 0) ready.push(other);
    }
  }
  for (let node = 0; node < size; node++) {
    if (into[node].length || !out[node].length) continue;
    let least = Infinity;
    for (const other of out[node]) least = Math.min(least, rank[other]);
    rank[node] = least - 1;
  }
  return rank;
}

/** Sort the nodes of each layer by the mean place of their neighbours above, then below, some times. */
function order(layers, size, out, into) {
  const place = new Float64Array(size), wish = new Float64Array(size);
  const number = (layer) => layer.forEach((node, at) => { place[node] = layer.length > 1 ? at / (layer.length - 1) : 0.5; });
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0, beside = down ? into : out;
    for (let n = 0; n < layers.length; n++) {
      const layer = layers[down ? n : layers.length - 1 - n];
      for (const node of layer) {
        let sum = 0;
        for (const other of beside[node]) sum += place[other];
        wish[node] = beside[node].length ? sum / beside[node].length : place[node];
      }
      layer.sort((a, b) => wish[a] - wish[b] || a - b);
      number(layer);
    }
  }
}

/** Horizontal places: each node near the mean of its neighbours, in its layer's order, without overlap. */
function columns(layers, size, out, into, widths) {
  const x = new Float64Array(size);
  for (const layer of layers) {
    let at = 0;
    for (const node of layer) {
      x[node] = at + widths[node] / 2;
      at += widths[node] + GAP_X;
    }
    for (const node of layer) x[node] -= (at - GAP_X) / 2;
  }
  for (let shift = 0; shift < SHIFTS; shift++) {
    const down = shift % 2 === 0, beside = down ? into : out;
    for (let n = 0; n < layers.length; n++) {
      const layer = layers[down ? n : layers.length - 1 - n], many = layer.length;
      const left = new Float64Array(many), right = new Float64Array(many);
      for (let at = 0; at < many; at++) {
        const node = layer[at];
        let sum = 0;
        for (const other of beside[node]) sum += x[other];
        left[at] = right[at] = beside[node].length ? sum / beside[node].length : x[node];
      }
      const apart = (at) => (widths[layer[at]] + widths[layer[at + 1]]) / 2 + GAP_X;
      for (let at = 1; at < many; at++) left[at] = Math.max(left[at], left[at - 1] + apart(at - 1));
      for (let at = many - 2; at >= 0; at--) right[at] = Math.min(right[at], right[at + 1] - apart(at));
      for (let at = 0; at < many; at++) x[layer[at]] = (left[at] + right[at]) / 2;
    }
  }
  return x;
}
