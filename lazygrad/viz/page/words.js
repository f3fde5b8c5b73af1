// Elements and texts. Whatever comes from a recording becomes a text node, never markup.

/** An element: `make("p", { class: "soft", onclick }, "text", child)`. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An element of SVG. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.map(String));
  return element;
}

/** A list of names and what they are; those that are empty are left out. */
export function facts(rows) {
  const list = make("dl");
  for (const [name, value] of rows) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(make("dt", {}, name), make("dd", {}, value));
  }
  return list;
}

export function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

export function bytes(number) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(number) >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${unit ? number.toPrecision(3) : number} ${units[unit]}`;
}

export function seconds(value) {
  if (!value) return "0 µs";
  if (value >= 1) return `${value.toPrecision(4)} s`;
  return value >= 1e-3 ? `${(value * 1e3).toPrecision(4)} ms` : `${(value * 1e6).toPrecision(4)} µs`;
}

export function rate(value, unit) {
  const sizes = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
  const [prefix, size] = sizes.find(([, least]) => value >= least) ?? ["", 1];
  return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
}

/** A call of the user as one text. */
export function callText(recording, number) {
  if (number < 0) return "";
  const [name, line] = recording.calls[number];
  return line ? `${name ? `${name} at ` : ""}${line}` : name;
}

/** The same with the line's text below. */
export function callElement(recording, number) {
  const [, , code] = recording.calls[number];
  return make("div", {}, callText(recording, number), code ? make("pre", {}, code) : null);
}

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A canvas with as many pixels as the screen has there; `paint(context, width, height)` is called when asked. */
export class Picture {
  constructor(label, paint) {
    this.paint = paint;
    this.element = make("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.waiting = false;
    new ResizeObserver(() => this.redraw()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  get width() { return this.element.clientWidth; }

  get height() { return this.element.clientHeight; }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const { width, height, element } = this, ratio = devicePixelRatio || 1;
      if (!width || !height) return;
      if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
        element.width = Math.round(width * ratio);
        element.height = Math.round(height * ratio);
      }
      const context = element.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = "12px system-ui, sans-serif";
      this.paint(context, width, height);
    });
  }
}

/** The text cut to a width. */
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let least = 0, most = text.length;
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) least = middle;
    else most = middle - 1;
  }
  return least ? `${text.slice(0, least)}…` : "";
}
