// @ts-check
// The codec of wire.py, on the browser's side.

/** @typedef {Uint8Array | Float32Array | Uint32Array} Block */

const KINDS = { u1: Uint8Array, f4: Float32Array, u4: Uint32Array };
const NO_NUMBER = 65535;

/**
 * What `wire.encode` was given.
 * @param {Uint8Array | ArrayBuffer} data
 * @returns {{ header: any, blocks: Record<string, any> }}
 */
export function decode(data) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  /** @type {Record<string, Block>} */
  const blocks = {};
  for (const [name, kind, offset, count] of header.blocks) {
    const Kind = /** @type {any} */ (KINDS)[kind];
    const from = bytes.byteOffset + 4 + size + offset;
    blocks[name] = new Kind(bytes.buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
  }
  return { header, blocks };
}

/**
 * What `decode` makes this header and these blocks of again.
 * @param {any} header
 * @param {Record<string, any>} blocks
 * @returns {Uint8Array}
 */
export function encode(header, blocks) {
  const whole = (/** @type {number} */ size) => Math.ceil(size / 8) * 8;
  let end = 0;
  const listed = Object.entries(blocks).map(([name, block]) => {
    const kind = Object.entries(KINDS).find(([, Kind]) => block instanceof Kind)?.[0];
    const at = end;
    end += whole(block.byteLength);
    return [name, kind, at, block.length];
  });
  const text = new TextEncoder().encode(JSON.stringify({ ...header, blocks: listed }));
  const start = whole(4 + text.length);
  const bytes = new Uint8Array(start + end).fill(32, 4, start);
  new DataView(bytes.buffer).setUint32(0, start - 4, true);
  bytes.set(text, 4);
  Object.values(blocks).forEach((block, i) =>
    bytes.set(
      new Uint8Array(block.buffer, block.byteOffset, block.byteLength),
      start + listed[i][2],
    ),
  );
  return bytes;
}

/**
 * Which of `size` cells may be attended to, 1 or 0, from stretches of equal cells, the first of
 * them allowed; null where all may.
 * @param {Uint32Array | undefined} runs
 * @param {number} size
 */
export function permitted(runs, size) {
  if (!runs) return null;
  const cells = new Uint8Array(size);
  let at = 0;
  runs.forEach((length, turn) => cells.fill(turn % 2 ? 0 : 1, at, (at += length)));
  return cells;
}

/**
 * Whether a later token may be looked at.
 * @param {Uint8Array | null} cells what may, of rows of `n`; null where all may
 * @param {number} n
 */
export const looksAhead = (cells, n) =>
  !cells || cells.some((may, at) => may === 1 && at % n > Math.floor(at / n));

/**
 * A head's weights as `wire.fine` packed them, and the half-width of what is unknown of each.
 * @param {Record<string, any>} blocks
 * @param {string} [prefix] of the blocks' names
 * @returns {{ weight: Float32Array, unknown: Float32Array | null }}
 */
export function unfold(blocks, prefix = "") {
  const [exact, high, low, floor] = ["exact", "high", "low", "floor"].map(
    (name) => blocks[prefix + name],
  );
  if (exact) return { weight: exact, unknown: null };
  const [weight, unknown] = [new Float32Array(high.length), new Float32Array(high.length)];
  for (let i = 0, next = 0; i < high.length; i++) {
    const known = high[i] >= floor[0];
    const code = high[i] * 256 + (known ? low[next++] : 127.5);
    weight[i] = (code / 65535) ** 2;
    unknown[i] = known ? 0 : ((2 * code + 128) * 128) / 65535 ** 2;
  }
  return { weight, unknown };
}

/**
 * The second of two matrices of `unfold` less the first. Even where both came with all 16 bits,
 * each of them is right to half a step of its code alone.
 * @param {{ weight: Float32Array, unknown: Float32Array | null }} from
 * @param {{ weight: Float32Array, unknown: Float32Array | null }} to
 */
export function between(from, to) {
  const weight = to.weight.map((value, i) => value - from.weight[i]);
  if (!from.unknown && !to.unknown) return { weight, unknown: null };
  const unknown = weight.map(
    (_, i) => 2 / NO_NUMBER + (from.unknown?.[i] || 0) + (to.unknown?.[i] || 0),
  );
  return { weight, unknown };
}

/**
 * Any numbers, as `wire.numbers` packed them: in single precision, or as a code of one or two
 * bytes between two ends, the last code for no number.
 * @param {Record<string, any>} blocks
 * @param {number | string} at the end of the blocks' names
 * @returns {Float32Array}
 */
export function numbers(blocks, at) {
  const exact = blocks[`v${at}`];
  if (exact) return exact;
  const [high, low, ends] = [blocks[`high${at}`], blocks[`low${at}`], blocks[`ends${at}`]];
  const none = low ? NO_NUMBER : 255;
  return Float32Array.from(high, (/** @type {number} */ byte, /** @type {number} */ i) => {
    const code = low ? byte * 256 + low[i] : byte;
    return code === none ? NaN : ends[0] + ((ends[1] - ends[0]) * code) / (none - 1);
  });
}
