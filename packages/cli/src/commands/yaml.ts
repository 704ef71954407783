// Loaded on demand, through this file: a bundler gives a dynamic import of the CommonJS package itself no names.
export { isSeq, parse, parseDocument, stringify } from 'yaml';
