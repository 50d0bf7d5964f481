// @ts-check
// A file of the reader's own, read here and sent as text.

import style from "./file_upload.css.js";
import { make, mount } from "./mount.js";

/**
 * The text of UTF-8 bytes without its byte order mark; null for bytes that are none.
 * @param {ArrayBuffer} bytes
 * @param {boolean} cut - whether the last character may be incomplete
 */
export function decoded(bytes, cut) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
  } catch {
    return null;
  }
}

export default mount("load", style, (view) => {
  const { root, header } = view;
  if (root.firstChild) return;
  const field = make("input", {
    type: "file",
    accept: ".txt,.csv,.tsv,.json,text/plain,text/csv,application/json",
    hidden: true,
    onchange: async () => {
      const file = field.files?.[0];
      if (file) {
        const most = 4 * header.most; // bytes: no character takes more
        const text = decoded(await file.slice(0, most).arrayBuffer(), file.size > most);
        const cut = file.size > most || (text ?? "").length > header.most;
        view.send("file", { name: file.name, text: text?.slice(0, header.most) ?? null, cut });
      }
      field.value = "";
    },
  });
  const button = make("button", { class: "small", onclick: () => field.click() }, header.label);
  root.append(field, button);
});
