// @ts-check
// A picture that moves as a file that programs without SVG show: an animated WebP, and where the browser
// has a recorder a video. Both are drawn from stills of the moving SVG.

import { make } from "./mount.js";
import { context } from "./matrix_canvas.js";
import { dressed, encoded } from "./svg_export.js";

const [SECONDS, A_SECOND] = [6, 10]; // of a loop, and stills of each
const WIDE = 800; // pixels
const MOST = 1_500_000; // bytes of a loop
const QUALITIES = [0.75, 0.6, 0.45, 0.3]; // the first with which it is no larger
const PNG_HEAD = 33; // bytes of a PNG up to the end of its first part
const [ANIMATED, DESCRIBED, OPAQUE] = [2, 8, 2]; // flags of a WebP, and of a still in it

/** A moving SVG as it stands after so many seconds. @param {string} svg @param {number} seconds */
const stillOf = (svg, seconds) =>
  svg
    .replace("@media (prefers-reduced-motion:no-preference)", "@media all")
    .replace(
      "<style>",
      `<style>*{animation-play-state:paused!important;animation-delay:-${seconds}s!important}`,
    );

/** The stills of a loop, in order. @param {string} svg @returns {Promise<HTMLCanvasElement[]>} */
async function stills(svg) {
  const times = [...Array(SECONDS * A_SECOND).keys()].map((at) => at / A_SECOND);
  /** @type {HTMLCanvasElement[]} */
  const made = [];
  for (const seconds of times) {
    const image = new Image();
    image.src = await dressed(stillOf(svg, seconds));
    await image.decode();
    const height = Math.round((image.height * WIDE) / image.width);
    const canvas = make("canvas", { width: WIDE, height });
    context(canvas).drawImage(image, 0, 0, WIDE, height);
    made.push(canvas);
  }
  return made;
}

/** @param {number} value @param {number} size in bytes, the lowest first */
const little = (value, size) =>
  [...Array(size).keys()].map((at) => Math.floor(value / 256 ** at) % 256);

/** The bytes of plain letters, as those of an address. @param {string} text */
const letters = (text) => [...text].map((each) => each.charCodeAt(0));

/** A part of a RIFF file. @param {string} name @param {ArrayLike<number>} inside */
function chunk(name, inside) {
  const data = new Uint8Array(8 + inside.length + (inside.length % 2));
  data.set([...letters(name), ...little(inside.length, 4)]);
  data.set(inside, 8);
  return data;
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A canvas as the part of a WebP that holds its pixels. @param {HTMLCanvasElement} canvas @param {number} quality @returns {Promise<Uint8Array>} */
async function pixelsOf(canvas, quality) {
  const blob = await encoded(canvas, "image/webp", quality);
  const bytes = new Uint8Array(await blob.arrayBuffer());
  for (let at = 12; at < bytes.length;) {
    const size = bytes.subarray(at + 4, at + 8).reduceRight((sum, each) => 256 * sum + each, 0);
    const end = at + 8 + size + (size % 2);
    if (/VP8[ L]/.test(String.fromCharCode(...bytes.subarray(at, at + 4))))
      return bytes.slice(at, end);
    at = end;
  }
  throw new Error("no picture");
}

/** What says in a file where it is from: the description of a picture, as cameras write one. @param {string} link */
const described = (link) => [
  ...[...letters("II"), 42, 0, ...little(8, 4), 1, 0],
  ...[14, 1, 2, 0, ...little(link.length + 1, 4), ...little(26, 4), ...little(0, 4)],
  ...[...letters(link), 0],
];

/** Stills as an animated WebP that plays again and again; what does not change stands longer. @param {HTMLCanvasElement[]} all @param {number} quality @param {string} link */
async function animated(all, quality, link) {
  const { width, height } = all[0];
  const size = [...little(width - 1, 3), ...little(height - 1, 3)];
  /** @type {{ data: Uint8Array, lasts: number }[]} */
  const frames = [];
  for (const canvas of all) {
    const data = await pixelsOf(canvas, quality);
    const last = frames[frames.length - 1];
    if (
      last &&
      last.data.every((byte, at) => byte === data[at]) &&
      last.data.length === data.length
    )
      last.lasts += 1000 / A_SECOND;
    else frames.push({ data, lasts: 1000 / A_SECOND });
  }
  const parts = [
    chunk("VP8X", [ANIMATED + DESCRIBED, 0, 0, 0, ...size]),
    chunk("ANIM", [255, 255, 255, 255, 0, 0]),
    ...frames.map(({ data, lasts }) => {
      const head = [0, 0, 0, 0, 0, 0, ...size, ...little(lasts, 3), OPAQUE];
      return chunk("ANMF", joined([Uint8Array.from(head), data]));
    }),
    chunk("EXIF", described(link)),
  ];
  return chunk("RIFF", joined([Uint8Array.from(letters("WEBP")), ...parts]));
}

/** A moving SVG as an animated WebP, as fine as so few bytes hold. @param {string} svg @param {string} link @returns {Promise<Blob>} */
export async function webp(svg, link) {
  const all = await stills(svg);
  let file = new Uint8Array();
  for (const quality of QUALITIES) {
    file = await animated(all, quality, link);
    if (file.length <= MOST) break;
  }
  return new Blob([file], { type: "image/webp" });
}

const VIDEOS = ["video/mp4", "video/webm"];

/** The kind of video that this browser records, undefined for none. */
export const videoKind = () =>
  globalThis.MediaRecorder && VIDEOS.find((kind) => MediaRecorder.isTypeSupported(kind));

/** A moving SVG as a video, which takes as long to record as it lasts. @param {string} svg @param {string} kind @returns {Promise<Blob>} */
export async function video(svg, kind) {
  const all = await stills(svg);
  const [{ width, height }] = all;
  const canvas = make("canvas", { width, height: height + (height % 2) });
  const pen = context(canvas);
  pen.drawImage(all[0], 0, 0);
  const videoBitsPerSecond = (8 * MOST) / SECONDS;
  const recorder = new MediaRecorder(canvas.captureStream(), {
    mimeType: kind,
    videoBitsPerSecond,
  });
  /** @type {Blob[]} */
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((done) => (recorder.onstop = done));
  recorder.start();
  const began = performance.now();
  await new Promise((done) => {
    const tick = (/** @type {number} */ now) => {
      const at = Math.floor(((now - began) / 1000) * A_SECOND);
      if (at >= all.length) return done(undefined);
      pen.drawImage(all[Math.max(0, at)], 0, 0);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  recorder.stop();
  await ended;
  return new Blob(parts, { type: kind });
}

/** A PNG in which a program finds where it is from. @param {Blob} png @param {string} link @returns {Promise<Blob>} */
export async function withSource(png, link) {
  const bytes = new Uint8Array(await png.arrayBuffer());
  const data = Uint8Array.from([...letters("tEXtSource"), 0, ...letters(link)]);
  const big = (/** @type {number} */ value) => Uint8Array.from(little(value, 4).reverse());
  const part = [big(data.length - 4), data, big(checksum(data))];
  return new Blob([bytes.subarray(0, PNG_HEAD), ...part, bytes.subarray(PNG_HEAD)], {
    type: png.type,
  });
}

/** CRC-32, with which each part of a PNG ends. @param {Uint8Array} data */
function checksum(data) {
  let sum = ~0;
  for (const byte of data) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
