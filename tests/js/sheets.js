// Panels as the files that the page offers: `node sheets.js MODULES PANEL ...` writes an SVG beside each.
import { readFileSync, writeFileSync } from "node:fs";

const [, , modules, ...panels] = process.argv;
const of = (name) => import(`${modules}/${name}.js`);
const { decode } = await of("codec");
const { resolved, sheet } = await of("panel_layout");
const { lookOf } = await of("theme");

const look = lookOf({
  ink: "#111111",
  paper: "#ffffff",
  primary: "#aa5500",
  border: "#dddddd",
  font: "sans-serif",
  sequential: ["#ffffff", "#000000"],
  diverging: ["#0000ff", "#ffffff", "#ff0000"],
  categorical: ["#aa5500", "#0000ff", "#008800"],
});
for (const file of panels) {
  const { header, blocks } = decode(readFileSync(file));
  const figures = resolved(header.figures, blocks);
  writeFileSync(`${file}.svg`, sheet({ header, figures }, look));
}
