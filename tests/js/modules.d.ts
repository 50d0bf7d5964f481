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
