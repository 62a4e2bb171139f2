// Lines of a pen → the 8 × 8 pixels that the model was trained on.
//
// A stroke is a list of points [x, y]. Digits of the training set fill their image from top to bottom, and each pixel says
// how much of its square is ink: so the drawing is stretched to that size, drawn large, and averaged.

const SIDE = 8;
const FINE = 32; // pixels of the large drawing across one of the small one
const PEN = 1.25; // the pen's width, in small pixels

/** 64 numbers from 0 to 1; all 0 where nothing was drawn. */
export function pixelsOf(strokes) {
  const pixels = new Float32Array(SIDE * SIDE);
  const points = strokes.flat();
  if (points.length === 0) return pixels;
  const size = SIDE * FINE;
  const canvas = new OffscreenCanvas(size, size);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const place = fitted(points, size);
  drawStrokes(pen, strokes.map((stroke) => stroke.map(place)), PEN * FINE);
  const { data } = pen.getImageData(0, 0, size, size);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      pixels[Math.floor(y / FINE) * SIDE + Math.floor(x / FINE)] += data[4 * (y * size + x) + 3] / 255 / FINE ** 2;
    }
  }
  return pixels;
}

/** Round lines through the points of each stroke, smooth between them. */
export function drawStrokes(pen, strokes, width) {
  pen.lineWidth = width;
  pen.lineCap = pen.lineJoin = "round";
  for (const stroke of strokes) {
    pen.beginPath();
    pen.moveTo(...stroke[0]);
    for (let i = 1; i < stroke.length - 1; i++) {
      const [x, y] = stroke[i];
      const [nextX, nextY] = stroke[i + 1];
      pen.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
    }
    pen.lineTo(...stroke.at(-1));
    pen.stroke();
  }
}

/** Where a point goes so that all fill the height, in the middle, with the pen inside. */
function fitted(points, size) {
  const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = size - PEN * FINE;
  const scale = room / Math.max(bottom - top, right - left, 1);
  return ([x, y]) => [
    size / 2 + (x - (left + right) / 2) * scale,
    size / 2 + (y - (top + bottom) / 2) * scale,
  ];
}
