// @ts-check
// A panel in a cell of a notebook, in a frame of its own: what is pressed there goes to Python, and
// the panel that Python makes of it takes its place once it is drawn. A module as anywidget calls it.

/**
 * What anywidget gives: the values that Python and the browser share.
 * @typedef {{ get: (name: string) => any, set: (name: string, value: any) => void, save_changes: () => void,
 *   on: (event: string, hear: () => void) => void, off: (event: string, hear: () => void) => void }} Shared
 */

/** @param {{ model: Shared, el: HTMLElement }} cell */
function render({ model, el }) {
  el.style.cssText = `position:relative;height:${model.get("height")}px`;
  /** @type {HTMLIFrameElement | undefined} */
  let now;
  const draw = () => {
    const frame = document.createElement("iframe");
    frame.title = "Headlight";
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.style.cssText = "position:absolute;inset:0;width:100%;height:100%;border:0";
    frame.srcdoc = model.get("document");
    frame.onload = () => {
      now?.remove();
      now = frame;
    };
    el.prepend(frame); // below the one that it replaces
  };
  const hear = (/** @type {MessageEvent} */ event) => {
    if (event.source !== now?.contentWindow || event.data?.headlight !== "select") return;
    model.set("chosen", event.data.value);
    model.save_changes();
  };
  addEventListener("message", hear);
  model.on("change:document", draw);
  draw();
  return () => {
    removeEventListener("message", hear);
    model.off("change:document", draw);
  };
}

export default { render };
