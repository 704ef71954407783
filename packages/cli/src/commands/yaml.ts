// Wraps the package for loading on demand: bundlers provide no named exports for a dynamic import of CommonJS.
export { isSeq, LineCounter, parse, parseDocument, stringify } from 'yaml';
