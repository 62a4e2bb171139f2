const HERE = import.meta.url;
const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array,
  float16: Uint16Array, bfloat16: Uint16Array, // as bits
};
const CODES = { 1: "STOPPED", 4: "NO_MEMORY", 5: "BAD_VALUE", 16: "BAD_SHAPE", 17: "BAD_ARGUMENT", 18: "BAD_WEIGHTS" };
// What kernels of float64 ask of a C library. Here C and JavaScript differ: 1 to any power is 1, even of NaN.
const LIBRARY = {
  ...Object.fromEntries(
    ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log1p", "sin", "sinh", "tan", "tanh"]
      .map((name) => [name, Math[name]]),
  ),
  fmod: (a, b) => a % b,
  fmodf: (a, b) => a % b,
  pow: (x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y),
};

/** What the model refused, in words; `code` is for programs. */
export class ModelError extends Error {
  constructor(code, text) {
    super(text);
    this.name = "ModelError";
    this.code = code;
  }
}

/** Load the model: from beside this file, or from a URL or bytes of your own. */
export async function load(source = new URL(FILES.code, HERE), weights = FILES.weights && new URL(FILES.weights, HERE)) {
  const code = await bytesOf(source);
  let made;
  try {
    made = await WebAssembly.instantiate(code, { env: LIBRARY });
  } catch (error) {
    throw new ModelError("BAD_CODE", `this is no WebAssembly that can be loaded here: ${error.message}`);
  }
  const blob = FILES.weights ? await bytesOf(weights) : new Uint8Array(0);
  return new Model(made.instance.exports, blob, { source, weights });
}

class Model {
  #exports; #memory; #files; #blob; #fixed; #end; #laid = null;

  constructor(exports, weights, files) {
    this.#exports = exports;
    this.#memory = exports.memory;
    this.#files = files;
    this.#end = exports.__heap_base.value;
    // The weights, then what the C interface reads and writes beside the tensors.
    this.#blob = { at: this.#take(weights.length), bytes: weights.length };
    const ranks = [...INPUTS, ...OUTPUTS].map((port) => port.shape.length);
    this.#fixed = {
      error: this.#take(256), options: this.#take(56), context: this.#take(4), needed: this.#take(8),
      shape: this.#take(8 * Math.max(1, ...ranks)), dims: this.#take(8 * DIMS.length),
      inputs: this.#take(16 * INPUTS.length), outputs: this.#take(16 * OUTPUTS.length),
    };
    this.#grow(this.#end);
    new Uint8Array(this.#memory.buffer, this.#blob.at).set(weights);
    Object.assign(this, { inputs: INPUTS, outputs: OUTPUTS, dims: DIMS });
    if (DIMS.length === 0) this.#layOut({}); // weights of another model are refused now
  }

  /** Run once. Sizes of dynamic dimensions are `dims`, or else follow from the lengths of the arrays. */
  run(inputs, dims = {}) {
    const fed = INPUTS.map((port) => checked(port, inputs));
    for (const name of Object.keys(inputs)) {
      if (!INPUTS.some((port) => port.name === name)) refuse("BAD_ARGUMENT", `there is no input ${name}: there are ${listed(INPUTS)}`);
    }
    const laid = this.#layOut(this.#bound(fed, dims));
    fed.forEach((array, i) => {
      if (array.byteLength === laid.inputs[i].bytes) this.#bytes(laid.inputs[i]).set(bytesIn(array));
      else refuse("BAD_SHAPE", `${INPUTS[i].name}: the array has ${array.length} elements, where ${laid.inputs[i].shape.join(" × ") || 1} were expected`);
    });
    const { context, dims: sizes, inputs: given, outputs: wanted } = this.#fixed;
    const at = this.#view().getUint32(context, true);
    this.#call("run", at, sizes, given, wanted);
    return Object.fromEntries(OUTPUTS.map((port, i) => {
      const array = arrayOf(port, this.#bytes(laid.outputs[i]).slice().buffer);
      return [port.name, Object.assign(array, { shape: laid.outputs[i].shape })];
    }));
  }

  /** The bytes that the model works in for these sizes, without weights, inputs and outputs. */
  memoryNeeded(dims = {}) {
    this.#putDims(DIMS.map((name) => sizeOf(name, dims)));
    this.#call("memory_needed", this.#fixed.dims, this.#fixed.needed);
    return Number(this.#view().getBigInt64(this.#fixed.needed, true));
  }

  /** What is not as it was built: files of other bytes, outputs of other answers. An empty list is good. */
  async selfTest(question = FILES.selfTest && new URL(FILES.selfTest, HERE)) {
    if (!TEST) refuse("BAD_ARGUMENT", "this model was built without a self-test");
    const changed = [];
    for (const [name, file, sha256] of [[FILES.code, this.#files.source, SHA256.code], [FILES.weights, this.#files.weights, SHA256.weights]]) {
      if (name && (await digestOf(await bytesOf(file))) !== sha256) changed.push(name);
    }
    if (changed.length > 0) return changed;
    const blob = await bytesOf(question);
    const read = (port, { offset, bytes, shape }) => {
      if (blob.length < offset + bytes) refuse("BAD_ARGUMENT", `the self-test has ${blob.length} bytes, and ends too early`);
      return Object.assign(arrayOf(port, blob.slice(offset, offset + bytes).buffer), { shape });
    };
    const inputs = Object.fromEntries(INPUTS.map((port, i) => [port.name, read(port, TEST.inputs[i])]));
    const answers = this.run(inputs, Object.fromEntries(DIMS.map((name, i) => [name, TEST.dims[i]])));
    return OUTPUTS.filter((port, i) => !agrees(port, answers[port.name], read(port, TEST.outputs[i]), TEST.outputs[i])).map((port) => port.name);
  }

  /** Dimensions: as said, as shapes of arrays say, and as lengths leave no choice. */
  #bound(fed, dims) {
    const known = new Map();
    for (const name of Object.keys(dims)) {
      if (!DIMS.includes(name)) refuse("BAD_ARGUMENT", `there is no dimension ${name}: there are ${DIMS.join(", ") || "none"}`);
      known.set(name, sizeOf(name, dims));
    }
    this.#putDims(DIMS.map((name) => known.get(name) ?? -1));
    fed.forEach((array, i) => {
      if (!Array.isArray(array.shape)) return;
      const view = this.#view();
      array.shape.forEach((size, axis) => view.setBigInt64(this.#fixed.shape + 8 * axis, BigInt(size), true));
      this.#call("bind", i, this.#fixed.shape, array.shape.length, this.#fixed.dims);
    });
    const view = this.#view();
    DIMS.forEach((name, i) => {
      const size = Number(view.getBigInt64(this.#fixed.dims + 8 * i, true));
      if (size >= 0) known.set(name, size);
    });
    for (let turn = 0; turn < DIMS.length; turn++) INPUTS.forEach((port, i) => follow(port, fed[i].length / port.perElement, known));
    return Object.fromEntries(known);
  }

  /** Have a context and buffers for these dimensions; as they are, where the last run had the same. */
  #layOut(dims) {
    const sizes = DIMS.map((name) => sizeOf(name, dims));
    this.#putDims(sizes);
    if (this.#laid && sizes.every((size, i) => size === this.#laid.sizes[i])) return this.#laid;
    this.#laid = null;
    const needed = this.memoryNeeded(dims);
    const begin = this.#end;
    let memory, inputs, outputs;
    try {
      memory = this.#take(needed);
      inputs = INPUTS.map((port, i) => this.#place(port, "input_shape", i));
      outputs = OUTPUTS.map((port, i) => this.#place(port, "output_shape", i));
      this.#grow(this.#end);
    } finally {
      this.#end = begin; // where the next layout begins again
    }
    const { options, context } = this.#fixed;
    const view = this.#view();
    for (let i = 0; i < 56; i += 8) view.setBigInt64(options + i, 0n, true);
    view.setUint32(options + 16, memory, true);
    view.setBigInt64(options + 24, BigInt(needed), true);
    if (FILES.weights) {
      view.setUint32(options + 32, this.#blob.at, true);
      view.setBigInt64(options + 40, BigInt(this.#blob.bytes), true);
    }
    this.#call("open", context, options);
    [[this.#fixed.inputs, inputs], [this.#fixed.outputs, outputs]].forEach(([table, places]) =>
      places.forEach(({ at, bytes }, i) => {
        view.setUint32(table + 16 * i, at, true);
        view.setBigInt64(table + 16 * i + 8, BigInt(bytes), true);
      }));
    this.#laid = { sizes, inputs, outputs };
    return this.#laid;
  }

  #place(port, question, number) {
    this.#call(question, number, this.#fixed.dims, this.#fixed.shape);
    const view = this.#view();
    const shape = port.shape.map((_, axis) => Number(view.getBigInt64(this.#fixed.shape + 8 * axis, true)));
    const bytes = shape.reduce((a, b) => a * b, port.elementBytes);
    return { at: this.#take(bytes), bytes, shape };
  }

  /** The next free place, at a multiple of 64; there is memory there once `#grow` was called. */
  #take(bytes) {
    const at = Math.ceil(this.#end / 64) * 64;
    this.#end = at + bytes;
    return at;
  }

  #grow(end) {
    const missing = Math.ceil((end - this.#memory.buffer.byteLength) / 65536);
    if (missing <= 0) return;
    try {
      this.#memory.grow(missing);
    } catch {
      refuse("NO_MEMORY", `the run needs ${end} bytes, and WebAssembly has ${this.#memory.buffer.byteLength} here and gets no more`);
    }
  }

  #putDims(sizes) {
    const view = this.#view();
    sizes.forEach((size, i) => view.setBigInt64(this.#fixed.dims + 8 * i, BigInt(size), true));
  }

  #call(name, ...given) {
    const code = this.#exports[`${NAME}_${name}`](...given, this.#fixed.error);
    if (code === 0) return;
    const text = new Uint8Array(this.#memory.buffer, this.#fixed.error + 4, 252);
    refuse(CODES[code], new TextDecoder().decode(text.slice(0, text.indexOf(0))));
  }

  #bytes({ at, bytes }) {
    return new Uint8Array(this.#memory.buffer, at, bytes);
  }

  #view() {
    return new DataView(this.#memory.buffer); // anew, as memory that grew is another buffer
  }
}

function refuse(code, text) {
  throw new ModelError(code, text);
}

function listed(ports) {
  return ports.map((port) => port.name).join(", ") || "none";
}

function sizeOf(name, dims) {
  const size = dims[name];
  if (size === undefined) refuse("BAD_SHAPE", `the dimension ${name} is not known: give its size, as in run(inputs, {${JSON.stringify(name)}: 1})`);
  if (!Number.isSafeInteger(size) || size < 0) refuse("BAD_SHAPE", `the dimension ${name} cannot be ${size}`);
  return size;
}

/** Learn the one dimension of a port that is not known yet from its number of elements. */
function follow(port, elements, known) {
  const open = port.shape.filter((dim) => typeof dim === "string" && !known.has(dim));
  if (open.length !== 1 || !DIMS.includes(open[0])) return;
  const others = port.shape.reduce((product, dim) => product * (typeof dim === "number" ? dim : known.get(dim) ?? 1), 1);
  if (elements % others !== 0) {
    refuse("BAD_SHAPE", `${port.name}: the array has ${elements} elements, which are no multiple of ${others}: it is ${port.shape.join(" × ")}`);
  }
  if (others > 0) known.set(open[0], elements / others);
}

function checked(port, inputs) {
  if (!Object.hasOwn(inputs, port.name)) refuse("BAD_ARGUMENT", `nothing was given for the input ${port.name}`);
  const array = inputs[port.name];
  const wanted = (ARRAYS[port.type] ?? Uint8Array).name;
  const given = Object.prototype.toString.call(array).slice(8, -1); // right for arrays of another window too
  if (given !== wanted) refuse("BAD_ARGUMENT", `${port.name}: ${given}, where ${wanted} was expected`);
  return array;
}

function arrayOf(port, buffer) {
  return new (ARRAYS[port.type] ?? Uint8Array)(buffer);
}

function bytesIn(array) {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

async function bytesOf(source) {
  if (ArrayBuffer.isView(source)) return bytesIn(source);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  const url = new URL(source, globalThis.location?.href ?? HERE);
  try {
    return new Uint8Array(await (url.protocol === "file:" ? readFile(url) : download(url)));
  } catch (error) {
    throw new ModelError("NOT_FOUND", `${url} cannot be read: ${error.message}`);
  }
}

async function readFile(url) {
  const files = "node:fs/promises"; // by a variable: bundlers for browsers do not look for it
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ files)).readFile(url);
}

async function download(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

async function digestOf(bytes) {
  const node = "node:crypto";
  const crypto = globalThis.crypto ?? (await import(/* webpackIgnore: true */ /* @vite-ignore */ node)).webcrypto;
  if (!crypto.subtle) refuse("BAD_ARGUMENT", "files cannot be checked here: browsers have crypto.subtle on https and localhost alone");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether an answer lies within the tolerance: relative, and as part of the largest number. */
function agrees(port, answer, expected, { rtol, ofLargest }) {
  if (answer.length !== expected.length) return false;
  if (rtol === 0) return answer.every((value, i) => value === expected[i]);
  if (expected instanceof Uint8Array) return answer.every((code, i) => Math.abs(code - expected[i]) <= 1); // neighbours
  const numbers = Array.from(expected, (code) => valueOf(port.type, code));
  const largest = numbers.reduce((most, value) => (Math.abs(value) < Infinity ? Math.max(most, Math.abs(value)) : most), 0);
  return numbers.every((right, i) => {
    const found = valueOf(port.type, answer[i]);
    return Object.is(found, right) || found === right || Math.abs(found - right) <= rtol * Math.abs(right) + ofLargest * largest;
  });
}

function valueOf(type, code) {
  if (type !== "float16" && type !== "bfloat16") return code;
  const [bits, bias] = type === "float16" ? [10, 15] : [7, 127];
  const exponent = (code & 0x7fff) >> bits;
  const fraction = (code & ((1 << bits) - 1)) / (1 << bits);
  const sign = code & 0x8000 ? -1 : 1;
  if (exponent === 2 * bias + 1) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 1 + fraction : fraction) * 2 ** ((exponent || 1) - bias);
}
