/** A place in a text that is not JSON5. */
export class Json5Error extends Error {
  readonly line: number;
  readonly column: number;

  constructor(expected: string, line: number, column: number) {
    super(`expected ${expected}`);
    this.line = line;
    this.column = column;
  }
}

const maxDepth = 64;
const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '0': '\0',
};
const words: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

/** Parses JSON5: JSON with comments, trailing commas, unquoted keys and single quotes. */
export function parseJson5(text: string): unknown {
  let at = 0;

  function fail(expected: string): never {
    const before = text.slice(0, at).split('\n');
    throw new Json5Error(expected, before.length, (before.at(-1) ?? '').length + 1);
  }

  function skip(): void {
    for (;;) {
      const blank = /[\s\ufeff]*(?:\/\/[^\n\r]*|\/\*[^]*?\*\/)?/y;
      blank.lastIndex = at;
      const length = blank.exec(text)?.[0].length ?? 0;
      if (length === 0) return;
      at += length;
    }
  }

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  }

  function readText(): string {
    const quote = text[at];
    let value = '';
    at += 1;
    for (;;) {
      value += take(/[^"'\\\n\r]*/y) ?? '';
      const next = text[at];
      if (next === undefined || next === '\n' || next === '\r') fail(`a closing ${quote}`);
      at += 1;
      if (next === quote) return value;
      if (next !== '\\') {
        value += next;
        continue;
      }
      const code = take(/u[\da-fA-F]{4}|x[\da-fA-F]{2}/y);
      if (code !== undefined) value += String.fromCharCode(Number.parseInt(code.slice(1), 16));
      else if (take(/\r\n|[\n\r\u2028\u2029]/y) === undefined) {
        const escaped = text[at] ?? fail('a character after the backslash');
        at += 1;
        value += escapes[escaped] ?? escaped;
      }
    }
  }

  function readMembers(depth: number): unknown {
    const members: [string, unknown][] = [];
    at += 1;
    for (skip(); text[at] !== '}'; skip()) {
      const key = text[at] === '"' || text[at] === "'" ? readText() : (take(/[\p{L}_$][\p{L}\p{N}_$]*/uy) ?? fail('a key or }'));
      skip();
      if (take(/:/y) === undefined) fail(`a colon after "${key}"`);
      members.push([key, readValue(depth + 1)]);
      skip();
      if (take(/,/y) === undefined && text[at] !== '}') fail('a comma or }');
    }
    at += 1;
    // An own property also when it is called "__proto__".
    return Object.fromEntries(members);
  }

  function readItems(depth: number): unknown {
    const items: unknown[] = [];
    at += 1;
    for (skip(); text[at] !== ']'; skip()) {
      items.push(readValue(depth + 1));
      skip();
      if (take(/,/y) === undefined && text[at] !== ']') fail('a comma or ]');
    }
    at += 1;
    return items;
  }

  function readValue(depth: number): unknown {
    if (depth > maxDepth) fail(`at most ${maxDepth} levels`);
    skip();
    const first = text[at];
    if (first === '{') return readMembers(depth);
    if (first === '[') return readItems(depth);
    if (first === '"' || first === "'") return readText();
    const number = take(/[+-]?(?:0[xX][\da-fA-F]+|Infinity|NaN|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$])/y);
    if (number !== undefined) return number.startsWith('-') ? -Number(number.slice(1)) : Number(number.replace('+', ''));
    const word = take(/(?:true|false|null)(?![\w$])/y);
    return word === undefined ? fail('a value') : words[word];
  }

  const value = readValue(0);
  skip();
  if (at < text.length) fail('the end of the file');
  return value;
}
