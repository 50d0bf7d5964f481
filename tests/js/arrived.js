// node arrived.js MODULES: for each line "SENT\tBACK" that it is told, what the browser makes of a head's
// weights, as float32: the weights, then the half-widths of what is unknown. One line back for each.
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { decode, unfold } = await import(`${process.argv[2]}/codec.js`);
for await (const line of createInterface({ input: process.stdin })) {
  const [sent, back] = line.split("\t");
  const { weight, unknown } = unfold(decode(readFileSync(sent)).blocks);
  const parts = [weight, unknown ?? new Float32Array(weight.length)];
  writeFileSync(back, Buffer.concat(parts.map((part) => Buffer.from(part.buffer))));
  console.log("done");
}
