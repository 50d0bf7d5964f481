// @ts-check
// Matrices as pictures: a canvas of cells, and cells that share a pixel.

import { put } from "./mount.js";
import { sentences } from "./sentences.js";

const say = sentences("figures");

/** @type {HTMLCanvasElement | undefined} */
let shared;

/**
 * A picture of one pixel a cell, valid until the next one is drawn on the same canvas; a cell without
 * a word stays clear.
 * @param {number} rows
 * @param {number} columns
 * @param {(at: number) => number | undefined} word of the cell at row x columns + column
 */
export function raster(rows, columns, word) {
  const canvas = (shared ||= document.createElement("canvas"));
  put(canvas, { width: Math.max(1, columns), height: Math.max(1, rows) });
  const image = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < rows * columns; at++) pixels[at] = word(at) || 0;
  canvas.getContext("2d", { willReadFrequently: true })?.putImageData(image, 0, 0);
  return canvas;
}

/** @param {HTMLCanvasElement} canvas */
export const context = (canvas) =>
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/**
 * The ends of a scale of weights.
 * @param {string} scale "row", "head" or "global"
 * @param {boolean} log
 * @param {string} [full] the number at the top
 */
export function ends(scale, log, full) {
  const top = { row: say("row_largest"), head: say("head_largest"), global: "1" }[scale];
  return [log ? (scale === "global" ? "0.001" : "1/1000 of it") : "0", full ?? top];
}

/**
 * A matrix of bytes with the largest of each fold x fold of them: a browser that shrinks a picture drops
 * or blurs the thin lines that matter.
 * @param {Uint8Array} bytes
 * @param {number} rows
 * @param {number} columns
 * @param {number} fold
 * @param {(byte: number) => number} [strength]
 */
export function folded(bytes, rows, columns, fold, strength = (byte) => byte) {
  if (fold === 1) return bytes;
  const wide = Math.ceil(columns / fold);
  const few = new Uint8Array(Math.ceil(rows / fold) * wide);
  const set = new Uint8Array(few.length);
  for (let from = 0; from < rows * columns; from++) {
    const to =
      Math.floor(Math.floor(from / columns) / fold) * wide + Math.floor((from % columns) / fold);
    if (set[to] && strength(bytes[from]) <= strength(few[to])) continue;
    [few[to], set[to]] = [bytes[from], 1];
  }
  return few;
}
