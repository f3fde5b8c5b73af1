// The page around a model: says what it takes, shows how much of it is loaded, runs it, and shows its results.
// Texts from the model become text nodes only.
import { description, load } from "./model.js";
import { decode, encode, sizeOf } from "./runtime.js";

// So many numbers of a result are shown.
const MOST_SHOWN = 1000;

const find = (id) => document.getElementById(id);

function say(text) {
  find("status").textContent = text;
}

function fail(error) {
  console.warn(error);
  find("error").textContent = error.message;
  find("error").hidden = false;
}

function made(kind, text = "", attributes = {}) {
  const node = document.createElement(kind);
  node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

const sizeText = (form) => typeof form === "number" ? form : form.length === 1 ? form[0]
  : form[0] === "max" || form[0] === "min" ? `${form[0]}(${sizeText(form[1])}, ${sizeText(form[2])})`
  : `(${sizeText(form[1])}${form[0]}${sizeText(form[2])})`;

const shapeText = (shape) => shape.length ? shape.map(sizeText).join(" × ") : "one number";

// ---- what the model takes ----

function field(row, note, control) {
  const label = made("label", `${row.label} `, { for: control.id });
  label.append(made("small", note));
  find("inputs").append(label, control);
}

for (const row of description.inputs) {
  const area = made("textarea", "", { id: `input-${row.name}`, spellcheck: "false", placeholder: "0" });
  field(row, `${shapeText(row.shape)}, ${row.dtype}; numbers row by row, or one number for all`, area);
}
for (const row of description.variables) {
  const control = made("input", "", {
    id: `input-${row.name}`, type: "number", min: row.low, max: row.high, value: row.low, step: 1,
  });
  field(row, `a whole number from ${row.low} to ${row.high}`, control);
}

const NUMBER = /^[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|inf|infinity|nan)$/i;

function numberOf(word, { dtype, label }) {
  const plain = { true: "1", false: "0" }[word.toLowerCase()] ?? word;
  const whole = !/float/.test(dtype);
  if (!(whole ? /^[-+]?\d+$/ : NUMBER).test(plain)) throw new Error(`${label}: ${word} is no ${whole ? "whole " : ""}number`);
  if (whole) return dtype.endsWith("int64") ? BigInt(plain.replace(/^\+/, "")) : Number(plain);
  if (/nan/i.test(plain)) return NaN;
  return /inf/i.test(plain) ? (plain.startsWith("-") ? -Infinity : Infinity) : Number(plain);
}

function given() {
  const values = {}, sizes = new Map();
  for (const { name, variable } of description.variables) {
    values[name] = Number(find(`input-${name}`).value);
    sizes.set(variable, values[name]);
  }
  for (const row of description.inputs) {
    const count = row.shape.reduce((all, size) => all * sizeOf(size, sizes), 1);
    const words = find(`input-${row.name}`).value.split(/[\s,;[\]()]+/).filter(Boolean);
    let numbers = (words.length ? words : ["0"]).map((word) => numberOf(word, row));
    if (numbers.length === 1) numbers = new Array(count).fill(numbers[0]);
    if (numbers.length !== count) throw new Error(`${row.label} takes ${count} numbers, not ${numbers.length}`);
    values[row.name] = encode(row.dtype, numbers);
  }
  return values;
}

// ---- results ----

function show(outputs, seconds) {
  find("outputs").replaceChildren();
  for (const { name, label } of description.outputs) {
    const { data, shape, dtype } = outputs[name];
    const heading = made("h2", `${label} `);
    heading.append(made("small", `${shapeText(shape)}, ${dtype}`));
    const row = shape.at(-1) ?? 1;
    const numbers = decode(dtype, data.subarray(0, MOST_SHOWN)).map((each) =>
      dtype === "bool" ? String(each !== 0) : /float/.test(dtype) ? String(Number(each.toPrecision(7))) : String(each));
    let text = "";
    numbers.forEach((each, n) => { text += (n === 0 ? "" : n % row ? ", " : "\n") + each; });
    if (data.length > MOST_SHOWN) text += `\n… and ${data.length - MOST_SHOWN} more`;
    find("outputs").append(heading, made("pre", text, { id: `output-${name}`, tabindex: "0" }));
  }
  say(`Computed in ${seconds.toFixed(3)} s.`);
}

// ---- running ----

function onprogress({ loaded, total }) {
  const bar = find("progress");
  bar.hidden = false;
  bar.max = Math.max(total, 1);
  bar.value = loaded;
  const most = (total / 1e6).toFixed(1);
  say(loaded < total ? `Loading weights: ${(loaded / 1e6).toFixed(1)} of ${most} MB.` : `Loaded ${most} MB. Preparing.`);
}

async function start() {
  say("Starting.");
  const model = await load(undefined, { onprogress });
  globalThis.model = model;  // for the browser's console: await model.run({ ... })
  find("progress").hidden = true;
  find("form").hidden = false;
  find("run").disabled = false;
  say("Ready.");
  find("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    find("run").disabled = true;
    find("error").hidden = true;
    say("Computing.");
    try {
      const begin = performance.now();
      show(await model.run(given()), (performance.now() - begin) / 1000);
    } catch (error) {
      say("Not computed.");
      fail(error);
    }
    find("run").disabled = false;
  });
}

start().catch((error) => {
  say("This model cannot run here.");
  find("progress").hidden = true;
  fail(error);
});
