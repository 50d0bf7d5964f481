// Every equality that a picture says of its places, one a line: `node sentences.js MODULES PAYLOAD`.
import { readFileSync } from "node:fs";

const [folder, payload] = process.argv.slice(2);
const of = (name) => import(`${folder}/${name}.js`);
const { decode } = await of("codec");
const { header, blocks } = decode(readFileSync(payload));
const said = {
  async steps() {
    const { told } = await of("step_details");
    return header.says.map((_, step) => {
      const { z, sum, log, p } = told(blocks, step);
      return `${z} − ${sum} = ${log}. e^${log} = ${p}`;
    });
  },
};
console.log((await said[header.kind]()).join("\n"));
