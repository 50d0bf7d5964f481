// @ts-check
// The address of what is on screen as a picture to take along carries it: its host in words, all of it as a
// QR code, and in the file.

/** @typedef {import("./draw.js").Pen} Pen */
/** An address: all of it, its host, and its code: how many modules a side has, 0 for none, and the path of the dark ones.
 * @typedef {{ link: string, host: string, code: { size: number, path: string } }} Address */

/** The code of an address, black on white in every theme. @param {Pen} pen @param {Address} address @param {number[]} place left, top, side */
export function qrCode(pen, { code: { size, path } }, [left, top, side]) {
  if (!size) return;
  pen.rect(left, top, side, side, { fill: "#ffffff" });
  const transform = `translate(${left.toFixed(1)} ${top.toFixed(1)}) scale(${(side / size).toFixed(4)})`;
  pen.put("path", { d: path, fill: "#000000", transform, "shape-rendering": "crispEdges" });
}

const [SIDE, GAP] = [96, 12]; // pixels of the code below a picture, and beside it

/** The line below a picture: where it is from. Returns its height. @param {Pen} pen @param {Address} address @param {number[]} place left, top, right */
export function signature(pen, address, [left, top, right]) {
  qrCode(pen, address, [right - SIDE, top, SIDE]);
  const end = right - (address.code.size ? SIDE + GAP : 0);
  const style = { anchor: /** @type {const} */ ("end"), fill: pen.look.primary };
  pen.text(end, top + SIDE / 2, address.host, { ...style, bold: true, room: end - left });
  return SIDE;
}
