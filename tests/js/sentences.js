// Every equality that a picture says of its places, one a line: `node sentences.js MODULES PAYLOAD`.
import { readFileSync } from "node:fs";

const [folder, payload] = process.argv.slice(2);
const of = (name) => import(`${folder}/${name}.js`);
const { decode } = await of("codec");
const { header, blocks } = decode(readFileSync(payload));
const places = (list) => Array.from(list.keys());
const said = {
  async story() {
    const { told } = await of("anatomy_story");
    return [
      ...places(blocks.q).map((d) => told.dims(blocks, d).replace("q ", "").replace("k ", "")),
      ...places(blocks.scores)
        .filter((k) => blocks.allowed[k])
        .map((k) => told.keys(header, blocks, k)),
      ...places(blocks.v).map((d) => told.values(header, blocks, d)),
      ...places(blocks.z).map((d) => told.sum(header, blocks, d)),
    ];
  },
  async steps() {
    const { told } = await of("step_details");
    return header.says.map((_, step) => {
      const { z, sum, log, p } = told(blocks, step);
      return `${z} − ${sum} = ${log}. e^${log} = ${p}`;
    });
  },
};
console.log((await said[header.kind]()).join("\n"));
