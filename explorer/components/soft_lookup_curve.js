// @ts-check
// The arithmetic of a soft lookup, and of the slider over its temperature.

export const STEPS = 200; // of the slider, evenly in log T; one more at each end is 0 and infinity

/**
 * softmax(scores / T) over the allowed keys; 0 is all weight on the largest, infinity the even row.
 * @param {Record<string, any>} blocks scores (key) and allowed (key), 0 or 1
 * @param {number} temperature
 * @returns {number[]}
 */
export function soften({ scores, allowed }, temperature) {
  let most = -Infinity;
  scores.forEach((score, k) => allowed[k] && (most = Math.max(most, score)));
  const power = (score) => {
    if (temperature === 0) return Number(score === most);
    return temperature === Infinity ? 1 : Math.exp((score - most) / temperature);
  };
  const powers = Array.from(scores, (score, k) => (allowed[k] ? power(score) : 0));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((each) => each / total);
}

/**
 * Σ weight x value.
 * @param {Record<string, any>} blocks values (key, dimension)
 * @param {number[]} weights
 */
export function mixture({ values }, weights) {
  const width = values.length / weights.length;
  const z = new Float64Array(width);
  weights.forEach((weight, k) => {
    if (weight) for (let d = 0; d < width; d++) z[d] += weight * values[k * width + d];
  });
  return z;
}

const norm = (vector) => Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0));

/** How far two vectors are apart. @param {Float64Array} soft @param {Float32Array} hard */
export function apart(soft, hard) {
  const distance = norm(soft.map((each, d) => each - hard[d]));
  const [a, b] = [norm(soft), norm(hard)];
  const dot = soft.reduce((sum, each, d) => sum + each * hard[d], 0);
  return { distance, relative: distance / b, cosine: dot / (a * b) };
}

/** A temperature's place on the slider. @param {any} header @param {number} t */
export function placed({ coldest, hottest }, t) {
  if (t === 0) return -1;
  if (t === Infinity) return STEPS + 1;
  const place = (STEPS * Math.log(t / coldest)) / Math.log(hottest / coldest);
  return Math.max(0, Math.min(STEPS, place));
}

/** @param {any} header @param {number} place */
export function temperatureAt({ coldest, hottest }, place) {
  if (place < 0) return 0;
  if (place > STEPS) return Infinity;
  return Number((coldest * (hottest / coldest) ** (place / STEPS)).toPrecision(3));
}

/** @param {number} t */
export const called = (t) => (t === Infinity ? "∞" : `${t}`);
