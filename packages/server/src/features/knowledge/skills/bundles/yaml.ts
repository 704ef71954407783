/** A module between the two: of a CommonJS package that is loaded on demand the bundle keeps the default export alone. */
export { parseDocument } from 'yaml';
