// Panels as they stand in a paper: `node papers.js MODULES HOWS PANEL ...` writes for each panel and way of
// drawing it, a line of JSON, every text with its box, and what is said to be left out.
import { readFileSync } from "node:fs";

const [, , modules, hows, ...panels] = process.argv;
const { laid } = await import(`${modules}/figure_file.js`);

for (const file of panels)
  for (const how of JSON.parse(readFileSync(hows))) {
    const { texts, omitted, width, height } = laid(readFileSync(file), how);
    console.log(JSON.stringify({ file, width, height, texts, omitted }));
  }
