// Modules that explorer/components/bundle.py makes of styles, of the theme and of the browser's sentences.
declare module "*.css.js" {
  const style: string;
  export default style;
}
declare module "*browser.toml.js" {
  const browser: Record<string, Record<string, string>>;
  export default browser;
}
declare module "*light.toml.js" {
  const light: {
    ink: string;
    paper: string;
    primary: string;
    border: string;
    font: string;
    sequential: string[];
    categorical: string[];
  };
  export default light;
}
declare module "*card_layout.toml.js" {
  type Names =
    "wide" | "high" | "margin" | "top" | "number" | "foot" | "host" | "code" | "space" | "pad";
  const layout: Record<Names, number> & {
    sizes: number[];
    pair: number[];
    plain: number[];
    middles: number[][];
    above: number[];
  };
  export default layout;
}
