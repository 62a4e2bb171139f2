// The page: a pen, the model, and what it thinks. `#7` in the address draws a seven.

import { load } from "./build/digits.js";
import { EXAMPLES } from "./examples.js";
import { drawStrokes, pixelsOf } from "./strokes.js";

const $ = (id) => document.getElementById(id);
const pad = $("pad");
const strokes = [];
let drawing = false;
let last = null;

const model = await load().catch((error) => {
  $("status").textContent = `The model did not load: ${error.message}`;
  throw error;
});

function makeRows() {
  for (let digit = 0; digit < 10; digit++) {
    const row = document.createElement("div");
    row.className = "row";
    row.innerHTML = `<span>${digit}</span><span class="track"><span class="bar"></span></span><span>–</span>`;
    $("chances").append(row);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = digit;
    button.title = `Draw a ${digit}`;
    button.onclick = () => show(digit);
    $("tools").append(button);
  }
}

/** Logits → chances that sum to 1. */
function softmax(logits) {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

function think() {
  const pixels = pixelsOf(strokes);
  paintSeen(pixels);
  const begin = performance.now();
  const { logits } = model.run({ images: pixels });
  const spent = performance.now() - begin;
  const chances = softmax(logits);
  const order = chances.map((_, digit) => digit).sort((a, b) => chances[b] - chances[a]);
  const blank = strokes.length === 0;
  $("digit").textContent = blank ? "?" : order[0];
  $("verdict").textContent = blank ? "Waiting for ink" : chances[order[0]] > 0.8 ? "No doubt" : "Perhaps";
  $("doubt").textContent = blank ? "or pick a digit below the sheet" : `${percent(chances[order[0]])}; next comes ${order[1]} with ${percent(chances[order[1]])}`;
  for (const [digit, row] of [...$("chances").children].entries()) {
    const chance = blank ? 0 : chances[digit];
    row.classList.toggle("best", !blank && digit === order[0]);
    row.querySelector(".bar").style.width = `${100 * chance}%`;
    row.lastChild.textContent = blank ? "–" : percent(chance);
  }
  return spent;
}

function percent(chance) {
  return chance > 0 && chance < 0.001 ? "<0.1%" : `${(100 * chance).toFixed(1)}%`;
}

function paintSeen(pixels) {
  const pen = $("seen").getContext("2d");
  const [r, g, b] = getComputedStyle(pad).color.match(/[\d.]+/g).map(Number);
  const image = pen.createImageData(8, 8);
  pixels.forEach((ink, i) => image.data.set([r, g, b, 255 * ink], 4 * i));
  pen.putImageData(image, 0, 0);
}

function paintPad() {
  const scale = devicePixelRatio;
  const side = Math.round(pad.clientWidth * scale);
  if (pad.width !== side) pad.width = pad.height = side;
  const pen = pad.getContext("2d");
  pen.setTransform(side / 100, 0, 0, side / 100, 0, 0);
  pen.clearRect(0, 0, 100, 100);
  pen.strokeStyle = getComputedStyle(pad).color;
  drawStrokes(pen, strokes, 9);
}

function update() {
  paintPad();
  think();
}

function show(digit) {
  strokes.splice(0, strokes.length, ...EXAMPLES[digit]);
  update();
}

function clear() {
  strokes.length = 0;
  update();
}

function pointOf(event) {
  const box = pad.getBoundingClientRect();
  return [(100 * (event.clientX - box.left)) / box.width, (100 * (event.clientY - box.top)) / box.height];
}

pad.onpointerdown = (event) => {
  pad.setPointerCapture(event.pointerId);
  const [x, y] = pointOf(event);
  drawing = true;
  last = [x, y];
  strokes.push([last, [x + 0.01, y]]); // a dot is a very short line
  update();
};
pad.onpointermove = (event) => {
  if (!drawing) return;
  for (const one of event.getCoalescedEvents?.() ?? [event]) {
    const point = pointOf(one);
    if (Math.hypot(point[0] - last[0], point[1] - last[1]) < 1.5) continue;
    last = point;
    strokes.at(-1).push(point);
  }
  update();
};
pad.onpointerup = pad.onpointercancel = () => { drawing = false; };
$("clear").onclick = clear;
addEventListener("resize", paintPad);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") clear();
  else if (/^\d$/.test(event.key) && !event.ctrlKey && !event.metaKey) show(Number(event.key));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);

makeRows();
const asked = /^#(\d)$/.exec(location.hash);
if (asked) show(Number(asked[1]));
else update();
const times = Array.from({ length: 20 }, think).sort((a, b) => a - b);
const wrong = await model.selfTest();
$("status").textContent =
  `Self-test: ${wrong.length === 0 ? "ok" : `FAILED: ${wrong.join(", ")}`} · one answer takes ${Math.max(times[10], 0.1).toFixed(1)} ms · ` +
  `${(model.memoryNeeded({ batch: 1 }) / 1024).toFixed(1)} KB of working memory`;
