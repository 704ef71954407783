/** A file of a package that is served as it is; the import is its address. */
declare module '*?url' {
  const address: string;
  export default address;
}
