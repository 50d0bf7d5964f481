// Panels as they stand in the presenter, on a phone and in a file: `node slides.js MODULES SIZES PANEL ...` writes for
// each panel and size, a line of JSON, every text with its box, and what is said to be left out.
import { readFileSync, writeFileSync } from "node:fs";

const [, , modules, sizes, ...panels] = process.argv;
const of = (name) => import(`${modules}/${name}.js`);
const { Pen } = await of("draw");
const { figure } = await of("figures");
const { decode } = await of("codec");
const { filed, resolved } = await of("panel_layout");
const { below, laid, smallest } = await of("slide_layout");
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
for (const file of panels)
  for (const { name, width, height, window } of JSON.parse(sizes)) {
    const { header, blocks } = decode(readFileSync(file));
    const view = { header, figures: resolved(header.figures, blocks), look };
    const began = performance.now();
    const made =
      name === "file"
        ? filed(view, look)
        : height
          ? laid(view, { width, height }, smallest(window))
          : below(view, width, 14);
    const took = Math.round(performance.now() - began);
    if (process.env.SVG)
      writeFileSync(
        `${file}.${name}.svg`,
        `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${made.height}" style="background:#fff;font-family:Inter,sans-serif">${made.svg}</svg>`,
      );
    const { texts, omitted } = made;
    const size = { width, ...made, svg: undefined, list: undefined };
    console.log(JSON.stringify({ file, name, ...size, texts, omitted, took }));
  }
