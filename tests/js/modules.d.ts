// Modules that explorer/components/bundle.py makes of styles, of the theme and of the glossary.
declare module "*.css.js" {
  const style: string;
  export default style;
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
declare module "*glossary.toml.js" {
  const terms: [name: string, means: string, spellings: string[]][];
  export default terms;
}
