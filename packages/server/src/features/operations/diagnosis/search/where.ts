import { AppError } from '../../../../kernel/app-error.ts';

/** A parsed condition; plain data, because a storage thread runs it. */
export type Condition =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Condition[] }
  | { readonly kind: 'not'; readonly part: Condition }
  | { readonly kind: 'error' }
  | { readonly kind: 'text'; readonly field: TextField; readonly operator: TextOperator; readonly values: readonly string[] }
  | { readonly kind: 'number'; readonly field: NumberField; readonly operator: NumberOperator; readonly value: number };

const textFields = [
  'id',
  'kind',
  'outcome',
  'reason',
  'error',
  'model',
  'agent',
  'origin',
  'session',
  'conversation',
  'channel',
  'chat',
  'trace',
  'root',
  'message',
  'principal',
  'tool',
] as const;
export type TextField = (typeof textFields)[number];
const textOperators = ['=', '!=', '~', 'in'] as const;
export type TextOperator = (typeof textOperators)[number];

const numberFields = ['cost', 'tokens', 'input', 'output', 'cached', 'duration', 'calls', 'tools', 'toolErrors'] as const;
export type NumberField = (typeof numberFields)[number];
const numberOperators = ['=', '!=', '<', '<=', '>', '>='] as const;
export type NumberOperator = (typeof numberOperators)[number];

const maxLength = 500;
const maxConditions = 20;
const maxDepth = 8;
const maxValues = 20;
const durationMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

interface Token {
  /** `value`: in double quotes, so never a keyword. */
  readonly kind: 'word' | 'value' | 'sign' | 'end';
  readonly text: string;
  /** Position of its first character, from 1. */
  readonly at: number;
}

/** Parses a condition of `obs.trace.search`; an error names the position. */
export function parseWhere(text: string): Condition {
  if (text.length > maxLength) throw wrong(`at most ${maxLength} characters are allowed`, maxLength + 1);
  return new Parser(readTokens(text)).parse();
}

function wrong(message: string, at: number): AppError {
  const full = `${message} (position ${at})`;
  return new AppError('invalid_params', `where: ${full}`, { param: 'where', issues: [{ path: 'where', message: full }] });
}

/** Characters that end a word. */
const token = /\s*(?:"((?:[^"\\]|\\.)*)"|(!=|<=|>=|[=<>~(),])|([^\s"=<>~(),!]+))/uy;

function readTokens(text: string): readonly Token[] {
  const tokens: Token[] = [];
  token.lastIndex = 0;
  for (;;) {
    const from = token.lastIndex;
    const found = token.exec(text);
    if (found === null) {
      const rest = text.slice(from);
      const at = from + rest.length - rest.trimStart().length;
      if (rest.trim() !== '') throw wrong(`unexpected ${JSON.stringify(text[at])}`, at + 1);
      tokens.push({ kind: 'end', text: 'the end', at: text.length + 1 });
      return tokens;
    }
    const [all, quoted, sign, word] = found;
    const at = from + all.length - all.trimStart().length + 1;
    if (quoted !== undefined) tokens.push({ kind: 'value', text: quoted.replaceAll(/\\(.)/gu, '$1'), at });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign, at });
    else tokens.push({ kind: 'word', text: word ?? '', at });
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #conditions = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): Condition {
    const condition = this.#or(0);
    const { kind, text, at } = this.#peek();
    if (kind !== 'end') throw wrong(`expected "and", "or" or the end instead of ${JSON.stringify(text)}`, at);
    return condition;
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', text: 'the end', at: 1 };
  }

  #take(): Token {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }

  /** Consumes the next token if it is this keyword or sign. */
  #accept(kind: 'word' | 'sign', text: string): boolean {
    const next = this.#peek();
    const same = next.kind === kind && (kind === 'word' ? next.text.toLowerCase() === text : next.text === text);
    if (same) this.#next += 1;
    return same;
  }

  #or(depth: number): Condition {
    const parts = [this.#and(depth)];
    while (this.#accept('word', 'or')) parts.push(this.#and(depth));
    return joined('or', parts);
  }

  #and(depth: number): Condition {
    const parts = [this.#not(depth)];
    while (this.#accept('word', 'and')) parts.push(this.#not(depth));
    return joined('and', parts);
  }

  #not(depth: number): Condition {
    const { at } = this.#peek();
    if (depth > maxDepth) throw wrong(`more than ${maxDepth} levels of "not" and parentheses`, at);
    if (this.#accept('word', 'not')) return { kind: 'not', part: this.#not(depth + 1) };
    if (!this.#accept('sign', '(')) return this.#condition();
    const inner = this.#or(depth + 1);
    const close = this.#take();
    if (close.text !== ')' || close.kind !== 'sign') throw wrong(`expected ")" instead of ${JSON.stringify(close.text)}`, close.at);
    return inner;
  }

  #condition(): Condition {
    const name = this.#take();
    this.#conditions += 1;
    if (this.#conditions > maxConditions) throw wrong(`more than ${maxConditions} conditions`, name.at);
    if (name.kind !== 'word') throw wrong(`expected a field or "error" instead of ${JSON.stringify(name.text)}`, name.at);
    const next = this.#peek();
    const isAlone = next.kind === 'end' || (next.kind === 'word' && next.text.toLowerCase() !== 'in') || next.text === ')';
    if (name.text === 'error' && isAlone) return { kind: 'error' };
    const text = textFields.find((field) => field === name.text);
    if (text !== undefined) return this.#textCondition(text);
    const number = numberFields.find((field) => field === name.text);
    if (number !== undefined) return this.#numberCondition(number);
    throw wrong(`${JSON.stringify(name.text)} is not a field; expected one of ${[...textFields, ...numberFields].join(', ')}`, name.at);
  }

  #operator<Operator extends string>(field: string, allowed: readonly Operator[]): Operator {
    const { text, at, kind } = this.#take();
    const found = kind === 'value' ? undefined : allowed.find((operator) => operator === text.toLowerCase());
    if (found === undefined) throw wrong(`expected one of ${allowed.join(' ')} after ${field} instead of ${JSON.stringify(text)}`, at);
    return found;
  }

  #value(): string {
    const { kind, text, at } = this.#take();
    if (kind !== 'word' && kind !== 'value') throw wrong(`expected a value instead of ${JSON.stringify(text)}`, at);
    return text;
  }

  #textCondition(field: TextField): Condition {
    const operator = this.#operator(field, textOperators);
    if (operator !== 'in') return { kind: 'text', field, operator, values: [this.#value()] };
    const open = this.#take();
    if (open.text !== '(' || open.kind !== 'sign') throw wrong(`expected "(" after "in" instead of ${JSON.stringify(open.text)}`, open.at);
    const values = [this.#value()];
    while (this.#accept('sign', ',')) values.push(this.#value());
    const close = this.#take();
    if (values.length > maxValues) throw wrong(`more than ${maxValues} values`, close.at);
    if (close.text !== ')' || close.kind !== 'sign') throw wrong(`expected "," or ")" instead of ${JSON.stringify(close.text)}`, close.at);
    return { kind: 'text', field, operator, values };
  }

  #numberCondition(field: NumberField): Condition {
    const operator = this.#operator(field, numberOperators);
    const { at } = this.#peek();
    const text = this.#value();
    const [, digits = '', unit] = /^(\d{1,12}(?:\.\d{1,9})?)(ms|s|m|h)?$/.exec(text) ?? [];
    if (digits === '' || (unit !== undefined && field !== 'duration'))
      throw wrong(`expected a number${field === 'duration' ? ' with ms, s, m or h' : ''} instead of ${JSON.stringify(text)}`, at);
    return { kind: 'number', field, operator, value: Number(digits) * (durationMs[unit ?? 'ms'] ?? 1) };
  }
}

function joined(kind: 'and' | 'or', parts: readonly [Condition, ...Condition[]] | readonly Condition[]): Condition {
  const [first] = parts;
  return parts.length === 1 && first !== undefined ? first : { kind, parts };
}
