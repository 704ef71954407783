/** A module in between: for a CommonJS package loaded on demand, the bundle keeps only the default export. */
export { stringify } from 'yaml';
