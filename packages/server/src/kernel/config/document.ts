import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Scalar, type YAMLError } from 'yaml';
import { type ConfigProblem, dotted, type Path } from './config-error.ts';

/** Deeper than any schema, shallow enough for every recursion over the result. */
const maxDepth = 32;
/** Values after all aliases are followed: a few anchors that name each other can stand for billions. */
const maxValues = 100_000;

export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface ParsedDocument {
  /** Plain data; no object has prototype keys. */
  readonly value: unknown;
  /** Position at which the value at `path` starts, or that of the nearest enclosing part that was written. */
  place(path: Path): Place;
  /** Position of the key itself. */
  keyPlace(path: Path): Place;
}

/** Sees each text value before it becomes part of the result and may replace it. */
export type ReplaceText = (text: string, path: Path, place: Place, plain: boolean) => unknown;

/**
 * Reads YAML 1.2 with positions. Reports a problem for each syntax error, duplicate key, tag, extra document,
 * key that is not text, endless or explosive alias, and nesting beyond any schema.
 * Uses its own messages, because those of the parser quote the file, and the file contains secrets.
 */
export function readDocument(
  source: string,
  text: string,
  replaceText: ReplaceText,
): { readonly document?: ParsedDocument; readonly problems: ConfigProblem[] } {
  const counter = new LineCounter();
  // The parser's own search for duplicate keys is quadratic; ours is not.
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    stringKeys: true,
    uniqueKeys: false,
    version: '1.2',
    logLevel: 'error',
  });
  const problems: ConfigProblem[] = [];
  const placeAt = (offset: number): Place => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  // Later errors are mostly consequences of the first.
  const first = document.errors[0] ?? document.warnings[0];
  if (first !== undefined) return { problems: [{ source, ...placeAt(first.pos[0]), message: syntaxMessage(first) }] };

  const positions = new Map<string, { readonly key: Place; readonly value: Place }>();
  let budget = maxValues;
  let exhausted = false;

  function refuse(offset: number, path: Path, message: string): undefined {
    problems.push({ source, ...placeAt(offset), ...(path.length > 0 && { key: dotted(path) }), message });
    return undefined;
  }

  function convert(given: Node | null, path: Path, keyOffset: number, depth: number): unknown {
    if (exhausted) return undefined;
    const offset = given?.range?.[0] ?? keyOffset;
    positions.set(JSON.stringify(path), { key: placeAt(keyOffset), value: placeAt(offset) });
    budget--;
    if (budget < 0 || depth > maxDepth) {
      exhausted = true;
      return refuse(offset, [], budget < 0 ? `more than ${maxValues} values after anchors are followed` : `nested deeper than ${maxDepth} levels`);
    }
    const node = isAlias(given) ? given.resolve(document) : given;
    if (isAlias(given) && node === undefined)
      return refuse(offset, path, 'no anchor of this name is defined above; a value that begins with "*" must be quoted');
    if (node === null || node === undefined) return null;
    if (node.tag !== undefined) return refuse(offset, path, 'tags (words after "!") are not supported here');
    if (isMap(node)) {
      const value: Record<string, unknown> = Object.create(null);
      for (const pair of node.items) {
        const keyNode: unknown = pair.key;
        const name = isScalar(keyNode) ? String(keyNode.value) : '';
        const at = isScalar(keyNode) ? (keyNode.range?.[0] ?? offset) : offset;
        if (Object.hasOwn(value, name)) {
          refuse(at, [...path, name], 'duplicate key');
          continue;
        }
        value[name] = convert(asNode(pair.value), [...path, name], at, depth + 1);
      }
      return value;
    }
    if (isSeq(node)) return node.items.map((item, index) => convert(asNode(item), [...path, index], asNode(item)?.range?.[0] ?? offset, depth + 1));
    if (isScalar(node)) return typeof node.value === 'string' ? replaceText(node.value, path, placeAt(offset), isPlain(node)) : node.value;
    return refuse(offset, path, 'expected a value');
  }

  const value = convert(asNode(document.contents), [], 0, 0);
  const find = (path: Path) => {
    for (let length = path.length; length > 0; length--) {
      const found = positions.get(JSON.stringify(path.slice(0, length)));
      // For something that is not there, the enclosing key is the place to look.
      if (found !== undefined) return length === path.length ? found : { key: found.key, value: found.key };
    }
    return { key: { line: 1, column: 1 }, value: { line: 1, column: 1 } };
  };
  return { document: { value, place: (path) => find(path).value, keyPlace: (path) => find(path).key }, problems };
}

function asNode(value: unknown): Node | null {
  return isMap(value) || isSeq(value) || isScalar(value) || isAlias(value) ? value : null;
}

function isPlain(scalar: Scalar): boolean {
  return scalar.type === 'PLAIN' || scalar.type === undefined;
}

function syntaxMessage(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'a tab is used for indentation; YAML allows only spaces';
    case 'BAD_INDENT':
      return 'the indentation does not fit the lines above';
    case 'MISSING_CHAR':
      return 'a closing quote or bracket, a comma, or the space after ":" is missing here or above';
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'a key must be on one line and be followed by ": "';
    case 'BAD_DQ_ESCAPE':
      return 'an unknown escape after "\\"; double the backslash or use single quotes';
    case 'BAD_SCALAR_START':
      return 'a value that begins with a special character must be quoted';
    case 'MULTIPLE_DOCS':
      return 'expected one document; a line "---" starts another';
    case 'NON_STRING_KEY':
      return 'a key must be text';
    case 'TAG_RESOLVE_FAILED':
      return 'tags (words after "!") are not supported here';
    case 'UNEXPECTED_TOKEN':
      return 'an unexpected character; inside { } and [ ] a value such as "${NAME}" must be quoted';
    case 'RESOURCE_EXHAUSTION':
      return 'nested too deep';
    default:
      return `this is not valid YAML (${error.code})`;
  }
}
