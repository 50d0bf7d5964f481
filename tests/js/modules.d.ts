// Modules that explorer/components/bundle.py makes of styles and of the theme.
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
