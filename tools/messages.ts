import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type ESTree, parseSync, Visitor } from 'vite';

/**
 * Checks the catalogues of the dashboard's languages against the texts in its code: an entry for each, none without a text, the same
 * placeholders, and no text of a page that is not wrapped. `--write` adds missing entries, as empty texts, and removes superfluous ones.
 */
export type Catalogue = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

export interface Messages {
  /** Each text, and whether it has plural forms. */
  readonly texts: ReadonlyMap<string, boolean>;
  /** Texts that are not wrapped, and wrapped ones that are not literals: one line each. */
  readonly faults: readonly string[];
}

const shownAttributes = new Set(['title', 'aria-label', 'placeholder', 'label', 'heading', 'lead', 'alt', 'badge']);
/** Elements with names and code in them, which stay as they are. */
const untranslated = new Set(['code', 'kbd', 'pre']);
const isText = (value: string): boolean => value !== 'Gatehouse' && /\p{L}{2}/u.test(value.replaceAll(/&\w+;/g, ''));
const literal = (node: ESTree.Node | undefined): string | undefined =>
  node?.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;

/** Returns the texts of one source file. */
export function messagesIn(path: string, source: string): Messages {
  const texts = new Map<string, boolean>();
  const faults: string[] = [];
  const fault = (node: ESTree.Node, what: string): void => {
    faults.push(`${path}:${source.slice(0, node.start).split('\n').length}: ${what}`);
  };
  new Visitor({
    CallExpression({ callee, arguments: args }) {
      if (callee.type !== 'Identifier') return;
      const [first, one] = args;
      if (callee.name === 't' || callee.name === 'tx') {
        const text = literal(first);
        if (text === undefined) fault(callee, `the text of ${callee.name}() is not a literal`);
        else texts.set(text, false);
      } else if (callee.name === 'plural') {
        const text = literal(one);
        if (text === undefined) fault(callee, 'the noun of plural() is not a literal');
        else texts.set(`{count} ${text}`, true);
      }
    },
    JSXElement({ openingElement: { name }, children }) {
      if (name.type === 'JSXIdentifier' && untranslated.has(name.name)) return;
      for (const child of children) if (child.type === 'JSXText' && isText(child.value)) fault(child, `"${child.value.trim()}" is not wrapped`);
    },
    JSXFragment({ children }) {
      for (const child of children) if (child.type === 'JSXText' && isText(child.value)) fault(child, `"${child.value.trim()}" is not wrapped`);
    },
    JSXAttribute({ name, value }) {
      if (name.type !== 'JSXIdentifier' || !shownAttributes.has(name.name) || value === null) return;
      const text = literal(value.type === 'JSXExpressionContainer' ? value.expression : value);
      if (text !== undefined && isText(text) && !/^https?:/.test(text)) fault(value, `${name.name}="${text}" is not wrapped`);
    },
  }).visit(parseSync(path, source).program);
  return { texts, faults };
}

const placeholdersOf = (text: string): string => [...new Set(text.match(/\{\w+\}/g))].toSorted().join(' ');

/** Returns what is wrong with a catalogue, one line each. */
export function judgeCatalogue(language: string, catalogue: Catalogue, texts: Messages['texts']): string[] {
  const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
  const faults: string[] = [];
  for (const [text, isPlural] of texts) {
    const entry = catalogue[text];
    const forms = typeof entry === 'string' ? { text: entry } : (entry ?? {});
    // "many" of Romance languages is for millions: it falls back to "other".
    const wanted = isPlural ? pluralCategories.filter((name) => name !== 'many') : ['text'];
    const missing = wanted.filter((name) => (forms[name] ?? '') === '');
    const other = Object.entries(forms).find(([, form]) => form !== '' && placeholdersOf(form) !== placeholdersOf(text));
    if (missing.length === wanted.length) faults.push(`${language}: no translation of ${JSON.stringify(text)}`);
    else if (missing.length > 0) faults.push(`${language}: ${JSON.stringify(text)} lacks the form ${missing.join(', ')}`);
    else if (other !== undefined) faults.push(`${language}: ${JSON.stringify(other[1])} has not the placeholders of ${JSON.stringify(text)}`);
  }
  for (const text of Object.keys(catalogue)) if (!texts.has(text)) faults.push(`${language}: ${JSON.stringify(text)} is not in the code`);
  return faults;
}

function update(file: string, language: string, catalogue: Catalogue, texts: Messages['texts']): void {
  const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
  const empty = Object.fromEntries(pluralCategories.filter((name) => name !== 'many').map((name) => [name, '']));
  const entries = [...texts].map(([text, isPlural]) => [text, catalogue[text] ?? (isPlural ? empty : '')] as const);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
  const source = join(import.meta.dirname, '..', 'packages', 'dashboard', 'src');
  const texts = new Map<string, boolean>();
  const faults: string[] = [];
  for (const path of globSync('**/*.{ts,tsx}', { cwd: source })) {
    if (path.endsWith('.test.ts') || path.endsWith('.d.ts') || path === 'language.ts') continue;
    const found = messagesIn(path, readFileSync(join(source, path), 'utf8'));
    faults.push(...found.faults);
    for (const [text, isPlural] of found.texts) texts.set(text, isPlural);
  }
  for (const file of globSync(join(source, 'languages', '*.json'))) {
    const language = basename(file, '.json');
    const catalogue = JSON.parse(readFileSync(file, 'utf8')) as Catalogue;
    if (values.write) update(file, language, catalogue, texts);
    else faults.push(...judgeCatalogue(language, catalogue, texts));
  }
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
