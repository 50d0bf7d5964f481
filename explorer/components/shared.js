// What both components need: the codec of wire.py, the theme's colours, and the bus between views.

function decode(data) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const kinds = { u1: Uint8Array, f4: Float32Array, u4: Uint32Array };
  const blocks = {};
  for (const [name, kind, offset, count] of header.blocks) {
    const from = bytes.byteOffset + 4 + size + offset;
    const one = kinds[kind].BYTES_PER_ELEMENT;
    blocks[name] = new kinds[kind](bytes.buffer.slice(from, from + count * one));
  }
  return { header, blocks };
}

// Which of `size` cells may be attended to, 1 or 0, from the block `runs` of head.py; null where all may.
function permitted(blocks, size) {
  if (!blocks.runs) return null;
  const cells = new Uint8Array(size);
  let at = 0;
  blocks.runs.forEach((length, turn) => cells.fill(turn % 2 ? 0 : 1, at, (at += length)));
  return cells;
}

const notAllowed = (q, k) => (k > q ? "not allowed: a later token" : "not allowed");

// 256 colours from the theme's sequential scale, as rgba in little-endian words.
function colours(element) {
  const list = getComputedStyle(element).getPropertyValue("--st-chart-sequential-colors").split(",");
  const stops = list.map((c) => c.trim().match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16)));
  const words = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const [r, g, b] = stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
    words[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return words;
}

const css = (word) => `rgb(${word & 255},${(word >> 8) & 255},${(word >> 16) & 255})`;

// The ink, dark or white, that stands out more on a colour (WCAG 2.2, relative luminance); one of the two always reaches 4.5 : 1.
function inkOn(word) {
  const [r, g, b] = [0, 8, 16].map((shift) => {
    const c = ((word >> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

// A weight's place on the scale, 0 to 255. `full` is the weight at the top; log shows three decades below it.
function shade(weight, full, log) {
  if (weight <= 0 || full <= 0) return 0;
  const share = weight / full;
  return Math.round(255 * Math.max(0, Math.min(1, log ? 1 + Math.log10(share) / 3 : share)));
}

function legendText(scale, log, full) {
  const top = { row: "each row’s largest", head: "each head’s largest", global: "1" }[scale];
  const low = log ? (scale === "global" ? "0.001" : "1/1000 of it") : "0";
  return { low, top: full === undefined ? top : `${full}` };
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function legend(words, low, high) {
  const box = make("div", "legend");
  const bar = make("span", "bar");
  bar.style.background = `linear-gradient(90deg,${[0, 64, 128, 192, 255].map((i) => css(words[i])).join(",")})`;
  box.append(make("span", "", low), bar, make("span", "", high));
  return box;
}

// The component's own style, once; STYLE is written in front of its code by bundle.py.
function dress(parentElement) {
  if (parentElement.querySelector("style.own")) return;
  const style = make("style", "own", STYLE);
  parentElement.prepend(style);
}

// The head that is open, for all views in this window: { layer, head }.
// The listener of a component that is gone would keep its data for good; `stop` ends it.
// A handler hears what is true now and not what was when the news set out: one listener may answer with other news before the next has its turn.
function listen(handler) {
  const heard = () => handler(bus.now);
  window.addEventListener("headlight", heard);
  return () => window.removeEventListener("headlight", heard);
}

// Hand a picture to the reader as a file: a Blob, or text of some type.
function save(kept, content, suffix, type) {
  const link = make("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = `${kept.header.file}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// An SVG as a PNG of twice its size. Cells of a matrix keep their edges unless it is to be `smooth`.
async function pixels(svg, smooth = false) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width * 2, image.height * 2);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = smooth;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/png" });
}

const plainKey = (event) => !event.altKey && !event.ctrlKey && !event.metaKey;

const bus = {
  tell(detail) {
    window.headlight = { ...window.headlight, ...detail };
    window.dispatchEvent(new Event("headlight"));
  },
  get now() {
    return window.headlight || {};
  },
};
