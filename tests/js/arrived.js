// node arrived.js MODULES SENT BACK: what the browser makes of a head's weights, as float32: the weights,
// then the half-widths of what is unknown.
import { readFileSync, writeFileSync } from "node:fs";

const [modules, sent, back] = process.argv.slice(2);
const { decode, unfold } = await import(`${modules}/wire.js`);
const { weight, unknown } = unfold(decode(readFileSync(sent)).blocks);
const parts = [weight, unknown ?? new Float32Array(weight.length)];
writeFileSync(back, Buffer.concat(parts.map((part) => Buffer.from(part.buffer))));
