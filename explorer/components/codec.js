// @ts-check
// The codec of wire.py, on the browser's side.

/** @typedef {Uint8Array | Float32Array | Uint32Array} Block */

const KINDS = { u1: Uint8Array, f4: Float32Array, u4: Uint32Array };

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
 * @param {number} [size] cells of a layer, where there are several
 */
export const looksAhead = (cells, n, size = cells?.length ?? 0) =>
  !cells || cells.some((may, at) => may === 1 && at % n > Math.floor((at % size) / n));

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
