// Runs a model that lazygrad.export wrote: reads its weights, makes its pipelines, runs its kernels with WebGPU.
// The same file for all models; model.js describes one. docs/export.md says how a page of your own uses it.

const VERSION = 1;
// What holds the values of a dtype; those of float16, bfloat16 and fp8 are their bits.
const ARRAYS = {
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
  float16: Uint16Array, bfloat16: Uint16Array, float32: Float32Array, fp8e4m3: Uint8Array, fp8e5m2: Uint8Array,
};

export const arrayOf = (dtype) => ARRAYS[dtype];

// What each launch is given begins at a multiple of this, where bindings may begin.
const ALIGNED = 256;
const words = (bytes) => Math.max(Math.ceil(bytes / 4) * 4, 4);

// ---- the device ----

export async function openDevice() {
  if (!globalThis.navigator?.gpu) {
    throw new Error(globalThis.isSecureContext === false
      ? "This page computes with WebGPU, which browsers offer only to pages from https:// or from localhost."
      : "This browser has no WebGPU, which this page computes with. Recent versions of Chrome, Edge, Safari and " +
        "Firefox have it on most systems.");
  }
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) {
    throw new Error("This browser has WebGPU and finds no graphics processor that it can use. Its settings for " +
      "hardware acceleration, or a newer graphics driver, may help.");
  }
  return adapter.requestDevice();
}

// What a call of WebGPU finds wrong, as an Error.
async function checked(device, what, call) {
  const kinds = ["validation", "out-of-memory", "internal"];
  for (const kind of kinds) device.pushErrorScope(kind);
  let made, thrown;
  try {
    made = await call();
  } catch (error) {
    thrown = error;
  }
  const found = [];
  for (const _ of kinds) found.push(device.popErrorScope());
  const problem = (await Promise.all(found)).find((error) => error);
  if (problem || thrown) {
    const room = problem instanceof GPUOutOfMemoryError ? "it has no room: " : "";
    throw new Error(`The graphics processor does not ${what}: ${room}${(problem ?? thrown).message}`);
  }
  return made;
}

// ---- weights ----

// A stream, so many bytes at a time.
class Bytes {
  constructor(response, name, total, onprogress) {
    this.reader = response.body.getReader();
    this.name = name;
    this.total = total;
    this.onprogress = onprogress;
    this.loaded = 0;
    this.chunk = new Uint8Array(0);
  }

  // The next `count` bytes, followed by zeros up to a whole word.
  async next(count) {
    const found = new Uint8Array(words(count));
    let filled = 0;
    while (filled < count) {
      if (!this.chunk.length && !(await this.more())) {
        throw new Error(`${this.name} is not complete: it ends after ${this.loaded} of ${this.total} bytes.`);
      }
      const part = this.chunk.subarray(0, count - filled);
      found.set(part, filled);
      filled += part.length;
      this.chunk = this.chunk.subarray(part.length);
    }
    return found;
  }

  async more() {
    const { done, value } = await this.reader.read();
    if (done) return false;
    this.chunk = value;
    this.loaded += value.length;
    if (this.loaded > this.total) throw this.other();
    this.onprogress?.({ loaded: this.loaded, total: this.total });
    return true;
  }

  other() {
    return new Error(`${this.name} is damaged, or it does not belong to model.js. Export the model again.`);
  }

  async end() {
    if (this.chunk.length || await this.more()) throw this.other();
  }
}

// A safetensors file: 8 bytes say how long the header is, the header is JSON, then come the tensors.
async function readWeights(url, { header, total, tensors }, onprogress, take, signal) {
  const name = "weights.safetensors";
  const response = await fetched(url, name, signal);
  const bytes = new Bytes(response, name, total, onprogress);
  onprogress?.({ loaded: 0, total });
  const length = new DataView((await bytes.next(8)).buffer).getBigUint64(0, true);
  if (length !== BigInt(header - 8)) throw bytes.other();
  let rows;
  try {
    rows = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode((await bytes.next(header - 8)).subarray(0, header - 8)));
  } catch (error) {
    throw error instanceof SyntaxError || error instanceof TypeError ? bytes.other() : error;
  }
  const places = new Map(Object.entries(rows).filter(([key]) => key !== "__metadata__"));
  const begin = (tensor) => places.get(tensor.name)?.data_offsets?.[0];
  const order = [...tensors].sort((one, other) => begin(one) - begin(other));
  let at = 0;
  for (const tensor of order) {
    if (begin(tensor) !== at || places.get(tensor.name).data_offsets[1] !== at + tensor.bytes) throw bytes.other();
    const found = await bytes.next(tensor.bytes);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", found.subarray(0, tensor.bytes)));
    if ([...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("") !== tensor.sha256) throw bytes.other();
    take(tensor, found);
    at += tensor.bytes;
  }
  await bytes.end();
}

async function fetched(url, name, signal) {
  let response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    throw new Error(`${name} cannot be loaded: ${error.message}`);
  }
  if (!response.ok) throw new Error(`${name} cannot be loaded: the server says ${response.status} ${response.statusText}`);
  return response;
}

// ---- sizes ----

const SIGNS = {
  "+": (a, b) => a + b, "*": (a, b) => a * b, "/": (a, b) => Math.floor(a / b), "%": (a, b) => a - b * Math.floor(a / b),
  max: Math.max, min: Math.min,
};

// A size: a number, [the name of a Variable], or [sign, one, other].
export function sizeOf(form, values) {
  if (typeof form === "number") return form;
  if (form.length === 1) return Number(values.get(form[0]));
  return SIGNS[form[0]](sizeOf(form[1], values), sizeOf(form[2], values));
}

const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

// ---- the model ----

export async function openModel(description, folder, { onprogress, device } = {}) {
  if (description.version !== VERSION) throw new Error("model.js and runtime.js were not exported together.");
  const model = new Model(description, device ?? await openDevice());
  await model.open(new URL(folder, globalThis.location?.href), onprogress);
  return model;
}

class Model {
  #last = Promise.resolve();
  #problem = null;
  #seed = crypto.getRandomValues(new Uint32Array(1))[0];
  #drawn = 0n;
  #first = new Map();  // what memory that the model writes begins as

  constructor(description, device) {
    this.description = description;
    this.device = device;
    device.lost.then(({ message }) => {
      this.#problem = new Error(`The graphics processor was lost: ${message || "load the page again."}`);
    });
    device.addEventListener?.("uncapturederror", ({ error }) => {
      this.#problem ??= new Error(`The graphics processor reports: ${error.message}`);
    });
  }

  get inputs() { return this.description.inputs; }
  get variables() { return this.description.variables; }
  get outputs() { return this.description.outputs; }

  async open(folder, onprogress) {
    const { device, description: { buffers, copied, steps, weights } } = this;
    const U = GPUBufferUsage;
    await checked(device, "give so much memory", () => {
      const make = (bytes, usage) => device.createBuffer({ size: words(bytes), usage });
      this.buffers = buffers.map(({ bytes }) => make(bytes, U.STORAGE | U.COPY_SRC | U.COPY_DST));
      this.copies = make(copied, U.STORAGE | U.COPY_DST);
      this.numbers = make(steps.length * ALIGNED, U.UNIFORM | U.COPY_DST);
      this.reading = this.#readings();
      this.staging = make(this.reading.reduce((sum, { bytes }) => sum + words(bytes), 0), U.MAP_READ | U.COPY_DST);
    });
    steps.forEach(({ numbers }, step) => {
      if (numbers) device.queue.writeBuffer(this.numbers, step * ALIGNED, new Uint32Array(numbers));
    });
    const take = ({ buffer }, found) => {
      device.queue.writeBuffer(this.buffers[buffer], 0, found);
      if (buffers[buffer].written) this.#first.set(buffer, found);
    };
    const stop = new AbortController();  // what fails ends the rest
    try {
      await Promise.all([
        this.#pipelines(folder),
        weights.tensors.length &&
          readWeights(new URL("weights.safetensors", folder), weights, onprogress, take, stop.signal),
      ]);
    } catch (error) {
      stop.abort();
      throw error;
    }
    await checked(device, "take these kernels and their memory", () => { this.launches = this.#launches(); });
  }

  // What is read after a run: results, arguments that were written, reports.
  #readings() {
    const { inputs, outputs, reports, buffers } = this.description;
    const wanted = [
      ...outputs.map(({ buffer }) => buffer),
      ...inputs.filter(({ written, buffer }) => written && buffer !== null).map(({ buffer }) => buffer),
      ...reports.map(({ buffer }) => buffer),
    ];
    let offset = 0;
    return [...new Set(wanted)].map((buffer) => {
      const bytes = buffers[buffer].bytes, row = { buffer, bytes, offset };
      offset += words(bytes);
      return row;
    });
  }

  async #pipelines(folder) {
    const { device, description: { kernels, text: length } } = this;
    const text = await (await fetched(new URL("kernels.wgsl", folder), "kernels.wgsl")).text();
    if (text.length !== length) throw new Error("kernels.wgsl does not belong to model.js. Export the model again.");
    this.layouts = kernels.map(({ stored }) => device.createBindGroupLayout({
      entries: ["uniform", ...stored.map((written) => written ? "storage" : "read-only-storage")].map((type, binding) =>
        ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
    }));
    this.pipelines = await Promise.all(kernels.map(async ({ name, entry, text: [begin, end] }, number) => {
      device.pushErrorScope("validation");  // what is wrong is said below
      const module = device.createShaderModule({ code: text.slice(begin, end), label: name });
      device.popErrorScope();
      try {
        return await device.createComputePipelineAsync({
          label: name,
          layout: device.createPipelineLayout({ bindGroupLayouts: [this.layouts[number]] }),
          compute: { module, entryPoint: entry },
        });
      } catch (error) {
        const messages = (await module.getCompilationInfo()).messages.filter(({ type }) => type === "error");
        const said = messages.map(({ lineNum, message }) => `line ${lineNum}: ${message}`).join("; ");
        throw new Error(`The graphics processor does not take the kernel ${name}: ${said || error.message}`);
      }
    }));
  }

  #launches() {
    return this.description.steps.map((step, place) => {
      if (step.kernel === undefined) return step;
      const resources = [
        { buffer: this.numbers, offset: place * ALIGNED, size: 4 * step.numbers.length },
        ...step.bound.map(([buffer, offset, size]) =>
          ({ buffer: buffer < 0 ? this.copies : this.buffers[buffer], offset, size })),
      ];
      const entries = resources.map((resource, binding) => ({ binding, resource }));
      const group = this.device.createBindGroup({ layout: this.layouts[step.kernel], entries });
      return { ...step, group };
    });
  }

  // ---- running ----

  // The results of the kernels: name → { data, shape, dtype }. A tensor is given as a typed array in row-major order
  // (or an array of numbers), a Variable as a number. One call runs after the other.
  run(given = {}) {
    const run = this.#last.then(() => this.#run(given));
    this.#last = run.catch(() => {});
    return run;
  }

  // What the model keeps between calls becomes what it was at first.
  reset() {
    return this.#last = this.#last.then(() => {
      const encoder = this.device.createCommandEncoder();
      this.description.buffers.forEach(({ written }, number) => {
        if (written && !this.#first.has(number)) encoder.clearBuffer(this.buffers[number]);
      });
      this.device.queue.submit([encoder.finish()]);
      for (const [number, bytes] of this.#first) this.device.queue.writeBuffer(this.buffers[number], 0, bytes);
    });
  }

  // Random numbers begin anew.
  manualSeed(seed) {
    this.#seed = seed >>> 0;
    this.#drawn = 0n;
  }

  async #run(given) {
    if (this.#problem) throw this.#problem;
    const { values, arrays } = this.#read(given);
    const { device } = this;
    await checked(device, "run the model", () => {
      for (const [{ buffer }, array] of arrays) {
        if (buffer !== null) this.#write(this.buffers[buffer], array);
      }
      this.#setNumbers(values);
      const encoder = device.createCommandEncoder();
      this.#encode(encoder);
      for (const { buffer, bytes, offset } of this.reading) {
        encoder.copyBufferToBuffer(this.buffers[buffer], 0, this.staging, offset, words(bytes));
      }
      device.queue.submit([encoder.finish()]);
    });
    const found = new Map();
    try {
      await this.staging.mapAsync(GPUMapMode.READ);
    } catch (error) {
      await device.queue.onSubmittedWorkDone().catch(() => {});
      throw this.#problem ?? new Error(`The graphics processor gives no result: ${error.message}`);
    }
    const mapped = this.staging.getMappedRange();
    for (const { buffer, bytes, offset } of this.reading) found.set(buffer, mapped.slice(offset, offset + bytes));
    this.staging.unmap();
    if (this.#problem) throw this.#problem;
    this.#look(found);
    for (const [{ buffer, written }, array, original] of arrays) {
      if (written && buffer !== null) original.set(new array.constructor(found.get(buffer), 0, array.length));
    }
    const results = Object.create(null);
    for (const { name, dtype, shape, buffer } of this.outputs) {
      const sizes = shape.map((size) => sizeOf(size, values));
      results[name] = { data: new ARRAYS[dtype](found.get(buffer).slice(0), 0, product(sizes)), shape: sizes, dtype };
    }
    return results;
  }

  #read(given) {
    const names = [...this.inputs, ...this.variables].map(({ name }) => name);
    for (const name of Object.keys(given)) {
      if (!names.includes(name)) throw new TypeError(`${name} is no argument; there are ${names.join(", ") || "none"}`);
    }
    const value = (name) => {
      if (!Object.hasOwn(given, name)) throw new TypeError(`the argument ${name} is missing`);
      return given[name];
    };
    const values = new Map();
    for (const { name, variable, low, high } of this.variables) {
      const number = Number(value(name));
      if (!Number.isInteger(number) || number < low || number > high) {
        throw new RangeError(`${name} must be a whole number from ${low} to ${high}, not ${given[name]}`);
      }
      values.set(variable, number);
    }
    const arrays = this.inputs.map((input) => {
      const { name, dtype, shape } = input, kind = ARRAYS[dtype], original = value(name);
      const sizes = shape.map((size) => sizeOf(size, values));
      let array = original;
      if (Array.isArray(original)) {
        array = kind.BYTES_PER_ELEMENT === 8 ? kind.from(original, BigInt) : kind.from(original);
      }
      if (!(array instanceof kind)) throw new TypeError(`${name} must be a ${kind.name} (${dtype}), or an array`);
      if (array.length !== product(sizes)) {
        throw new RangeError(`${name} must have ${product(sizes)} elements (shape ${sizes.join(" × ") || "()"}), not ${array.length}`);
      }
      if (Array.isArray(original) && input.written) throw new TypeError(`${name} is written by the model: give it as a ${kind.name}`);
      return [input, array, original];
    });
    return { values, arrays };
  }

  #write(buffer, array) {
    let bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    if (bytes.length % 4) {
      const whole = new Uint8Array(words(bytes.length));
      whole.set(bytes);
      bytes = whole;
    }
    if (bytes.length) this.device.queue.writeBuffer(buffer, 0, bytes);
  }

  #setNumbers(values) {
    const { sources, steps, draws } = this.description;
    const numbers = sources.map(({ kind, name, plus }) =>
      kind === "seed" ? BigInt(this.#seed) : kind === "base" ? this.#drawn + BigInt(plus) : BigInt(values.get(name)));
    steps.forEach(({ values: places = [] }, step) => {
      for (const [offset, bytes, source] of places) {
        const word = new DataView(new ArrayBuffer(8));
        word.setBigUint64(0, BigInt.asUintN(64, numbers[source]), true);
        this.device.queue.writeBuffer(this.numbers, step * ALIGNED + offset, word.buffer, 0, bytes);
      }
    });
    if (draws !== null) this.#drawn += BigInt(draws);
  }

  #encode(encoder) {
    let pass = null;
    const end = () => { pass?.end(); pass = null; };
    for (const step of this.launches) {
      if (step.clear !== undefined) {
        end();
        encoder.clearBuffer(this.buffers[step.clear]);
      } else if (step.copy !== undefined) {
        end();
        const [buffer, begin, bytes, to] = step.copy;
        encoder.copyBufferToBuffer(this.buffers[buffer], begin, this.copies, to, bytes);
      } else {
        pass ??= encoder.beginComputePass();
        pass.setPipeline(this.pipelines[step.kernel]);
        pass.setBindGroup(0, step.group);
        pass.dispatchWorkgroups(...step.groups);
      }
    }
    end();
  }

  // Throw what a kernel has reported; from now on it is as if it had not.
  #look(found) {
    const failed = this.description.reports.find(({ buffer, offset }) =>
      new BigInt64Array(found.get(buffer), offset, 1)[0] !== 0n);
    if (!failed) return;
    const index = new BigInt64Array(found.get(failed.buffer), failed.offset + 8, 1)[0];
    const encoder = this.device.createCommandEncoder();
    for (const { buffer } of this.description.reports) encoder.clearBuffer(this.buffers[buffer]);
    this.device.queue.submit([encoder.finish()]);
    throw new RangeError(failed.problem
      ? `${failed.problem}${failed.where}`
      : `index ${index} is out of range for an axis of size ${failed.size}${failed.where}`);
  }
}

// ---- numbers of 16 bits ----

const float = new DataView(new ArrayBuffer(4));

function halfOf(number) {
  float.setFloat32(0, number);
  const bits = float.getUint32(0), sign = (bits >>> 16) & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;  // what rounds above 65504
  if (size < 0x38800000) {  // subnormal: multiples of 2⁻²⁴; halves to even
    const scaled = Math.abs(number) * 2 ** 24, down = Math.floor(scaled), rest = scaled - down;
    return sign | (down + (rest > 0.5 || (rest === 0.5 && down % 2) ? 1 : 0));
  }
  return sign | ((size - 0x38000000 + 0xfff + ((size >>> 13) & 1)) >>> 13);
}

function ofHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >>> 10) & 31, rest = bits & 1023;
  if (exponent === 31) return rest ? NaN : sign * Infinity;
  return exponent ? sign * (1024 + rest) * 2 ** (exponent - 25) : sign * rest * 2 ** -24;
}

function bfloatOf(number) {
  float.setFloat32(0, number);
  const bits = float.getUint32(0);
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

function ofBfloat(bits) {
  float.setUint32(0, bits << 16);
  return float.getFloat32(0);
}

const BITS = { float16: [halfOf, ofHalf], bfloat16: [bfloatOf, ofBfloat] };

// Numbers as `run` takes them, and back; those of fp8 stay bits.
export function encode(dtype, numbers) {
  const kind = ARRAYS[dtype];
  if (BITS[dtype]) return kind.from(numbers, (each) => BITS[dtype][0](each));
  return kind.BYTES_PER_ELEMENT === 8 ? kind.from(numbers, BigInt) : kind.from(numbers);
}

export function decode(dtype, array) {
  return Array.from(array, BITS[dtype] ? (each) => BITS[dtype][1](each) : (each) => each);
}
