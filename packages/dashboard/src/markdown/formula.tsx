import { createElement, type CSSProperties, Fragment, memo, type ReactNode, use } from 'react';

/** A node of the converted formula, as far as it is read. */
interface Node {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly children?: unknown;
  readonly attributes?: unknown;
  readonly classes?: unknown;
  readonly style?: unknown;
}

/** Elements of MathML that formulas consist of; there are no links and no pictures among them. */
const elements = new Set(
  'math mrow mi mn mo mtext ms mspace msup msub msubsup mfrac msqrt mroot mover munder munderover mmultiscripts mprescripts none mtable mtr mtd mpadded mphantom menclose mstyle merror'.split(
    ' ',
  ),
);
const attributeNames = new Set(
  'accent accentunder columnalign columnlines columnspacing columnspan depth dir display displaystyle fence form frame height largeop linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowlines rowspacing rowspan rspace scriptlevel separator side stretchy symmetric voffset width'.split(
    ' ',
  ),
);
/** A formula may expand and nest only so far. */
const maxDepth = 100;

type ToTree = (tex: string, display: boolean) => unknown;

let loading: Promise<ToTree> | undefined;

/** Loads the library with the first formula. Where that fails, formulas stay as they are written. */
function loadLibrary(): Promise<ToTree> {
  loading ??= import('./tex.ts').then(
    ({ toTree }) => toTree,
    () => () => undefined,
  );
  return loading;
}

/**
 * Draws a formula as MathML, of React elements: the page may not turn texts into markup, and allows no style attributes. Suspends until
 * the library is loaded.
 */
export const Formula = memo(function Formula({ tex, display }: { readonly tex: string; readonly display: boolean }) {
  const toTree = use(loadLibrary());
  return draw(toTree(tex, display), 0, 0) ?? <code>{tex}</code>;
});

function draw(given: unknown, key: number, depth: number): ReactNode {
  if (typeof given !== 'object' || given === null || depth > maxDepth) return undefined;
  const node: Node = given;
  if (typeof node.text === 'string') return node.text;
  const children = Array.isArray(node.children) ? node.children.map((child, at) => draw(child, at, depth + 1)) : [];
  if (typeof node.type !== 'string') return createElement(Fragment, { key }, ...children);
  if (!elements.has(node.type)) return undefined;
  return createElement(node.type, { key, ...propsOf(node) }, ...children);
}

function propsOf({ attributes, classes, style }: Node): Record<string, unknown> {
  const given = Object.entries(attributes ?? {});
  const inText = given.find(([name]) => name === 'style')?.[1];
  return {
    ...Object.fromEntries(
      given.filter(([name, value]) => attributeNames.has(name) && typeof value !== 'object').map(([name, value]) => [name, String(value)]),
    ),
    ...(Array.isArray(classes) && classes.some(Boolean) && { className: classes.filter(Boolean).join(' ') }),
    style: { ...stylesOf(inText), ...plainStyles(style) },
  };
}

/** Reads `a: b; c: d`. */
function stylesOf(text: unknown): CSSProperties {
  if (typeof text !== 'string') return {};
  return plainStyles(
    Object.fromEntries(
      text.split(';').flatMap((one) => {
        const [name = '', value = ''] = one.split(':').map((part) => part.trim());
        return name === '' ? [] : [[name, value]];
      }),
    ),
  );
}

function plainStyles(style: unknown): CSSProperties {
  return Object.fromEntries(
    Object.entries(style ?? {})
      // Nothing is loaded: no value with an address.
      .filter(([, value]) => /^[\w\s#%.,+-]*$/.test(String(value)))
      .map(([name, value]) => [name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()), String(value)]),
  );
}
