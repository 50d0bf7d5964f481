// @ts-check
// A file of the reader's own, read here and sent as text.

import style from "./file_upload.css.js";
import { make, mount } from "./mount.js";

export default mount("load", style, (view) => {
  const { root, header } = view;
  if (root.firstChild) return;
  const field = make("input", {
    type: "file",
    accept: ".txt,.csv,.tsv,text/plain,text/csv",
    hidden: true,
    onchange: async () => {
      const file = field.files?.[0];
      if (file) {
        const most = 4 * header.most; // bytes: no character takes more
        const text = await file.slice(0, most).text();
        const cut = file.size > most || text.length > header.most;
        view.send("file", { name: file.name, text: text.slice(0, header.most), cut });
      }
      field.value = "";
    },
  });
  const button = make("button", { class: "small", onclick: () => field.click() }, header.label);
  root.append(field, button);
});
