// @ts-check
// News between the views of a window: which head is open, which row is held, which step is shown.

const NAME = "headlight";
const here = () => /** @type {any} */ (globalThis);

export const bus = {
  /** @param {Record<string, any>} news what is now true, beside what was said before */
  tell(news) {
    here()[NAME] = { ...here()[NAME], ...news };
    globalThis.dispatchEvent(new Event(NAME));
  },
  /** @returns {Record<string, any>} all that was told so far */
  get now() {
    return here()[NAME] || {};
  },
};

/**
 * Call `handler` at every piece of news. It hears what is true now and not what was when the news
 * set out: one listener may answer with other news before the next has its turn. A listener keeps
 * its data for good until the function that this returns is called.
 * @param {(now: Record<string, any>) => void} handler
 * @returns {() => void}
 */
export function listen(handler) {
  const heard = () => handler(bus.now);
  globalThis.addEventListener(NAME, heard);
  return () => globalThis.removeEventListener(NAME, heard);
}
