// codec.js reads what Python's wire.py wrote: the golden files of both.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const { decode, looksAhead, permitted, unfold } = await import(`${process.env.MODULES}/codec.js`);
const golden = (name) => [
  decode(readFileSync(new URL(`golden/${name}.bin`, import.meta.url))),
  JSON.parse(readFileSync(new URL(`golden/${name}.json`, import.meta.url), "utf8")),
];
const near = (found, wanted, apart, about = "") =>
  assert.ok(Math.abs(found - wanted) <= apart, `${found} is not ${wanted} ± ${apart} ${about}`);

test("header and blocks come as they were written, whatever the text", () => {
  const [{ header, blocks }, says] = golden("plain");
  const { blocks: listed, ...rest } = header;
  assert.deepEqual(rest, says.header);
  assert.equal(listed.length, 3);
  for (const [name, values] of Object.entries(says.blocks))
    assert.deepEqual([...blocks[name]], values);
});

test("whether a later token may be looked at is seen from the cells", () => {
  const causal = [1, 0, 0, 1, 1, 0, 1, 1, 1];
  const window = [1, 1, 0, 1, 1, 1, 0, 1, 1];
  assert.equal(looksAhead(Uint8Array.from(causal), 3), false);
  assert.equal(looksAhead(Uint8Array.from(window), 3), true);
  assert.equal(looksAhead(null, 3), true);
});

test("bytes at any offset of a larger buffer are read", () => {
  const data = readFileSync(new URL("golden/plain.bin", import.meta.url));
  const shifted = new Uint8Array(data.length + 3);
  shifted.set(data, 3);
  assert.deepEqual(decode(shifted.subarray(3)).header.n, 3);
});

test("small matrices arrive exactly", () => {
  const [{ blocks }, { weight }] = golden("exact");
  const found = unfold(blocks);
  assert.equal(found.unknown, null);
  assert.deepEqual([...found.weight], weight.map(Math.fround));
});

test("large matrices are within what is said to be unknown, and large weights are known", () => {
  const [{ blocks }, says] = golden("fine");
  const { weight, unknown } = unfold(blocks);
  assert.equal(weight.length, says.weight.length);
  // A code of 16 bits of the root is off by at most 1 / 65535 of twice the root: 2e-5 holds it, and the golden file is rounded to 1e-6.
  says.weight.forEach((wanted, at) => near(weight[at], wanted, unknown[at] + 2e-5 + 1e-6));
  const known = says.weight.filter((wanted, at) => wanted > 0.2 && unknown[at] > 0);
  assert.equal(known.length, 0);
});

test("which cells are allowed", () => {
  const [{ header, blocks }, { cells }] = golden("runs");
  assert.deepEqual([...permitted(blocks.runs, header.size)].map(Boolean), cells);
  assert.equal(permitted(undefined, 4), null);
});
