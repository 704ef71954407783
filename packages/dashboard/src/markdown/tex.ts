import temml from 'temml';

/** The types of the library have it under another name. */
const convert: unknown = Reflect.get(temml, '__renderToMathMLTree');

/** Converts TeX to the tree that the library would make MathML of; undefined when it is not valid. Without React, so that React is not split off for it. */
export function toTree(tex: string, display: boolean): unknown {
  if (typeof convert !== 'function') return undefined;
  try {
    return convert(tex, { displayMode: display, throwOnError: true, trust: false, maxExpand: 200, maxSize: [50, 50], wrap: 'none' });
  } catch {
    return undefined;
  }
}
