import hljs from 'highlight.js/lib/core';
import type { LanguageFn } from 'highlight.js';

/** A part of a code block; the kind selects its colour. */
export interface Piece {
  readonly kind: string | undefined;
  readonly text: string;
}

type Load = () => Promise<{ readonly default: LanguageFn }>;

/** Each language is a separate file, fetched when a code block needs it. */
const languages: Readonly<Record<string, Load>> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  lua: () => import('highlight.js/lib/languages/lua'),
  makefile: () => import('highlight.js/lib/languages/makefile'),
  markdown: () => import('highlight.js/lib/languages/markdown'),
  php: () => import('highlight.js/lib/languages/php'),
  powershell: () => import('highlight.js/lib/languages/powershell'),
  python: () => import('highlight.js/lib/languages/python'),
  r: () => import('highlight.js/lib/languages/r'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  scss: () => import('highlight.js/lib/languages/scss'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
};

const aliases: Readonly<Record<string, string>> = {
  'c++': 'cpp',
  'c#': 'csharp',
  cs: 'csharp',
  console: 'bash',
  docker: 'dockerfile',
  h: 'c',
  hpp: 'cpp',
  html: 'xml',
  js: 'javascript',
  json5: 'json',
  jsonc: 'json',
  jsx: 'javascript',
  kt: 'kotlin',
  make: 'makefile',
  md: 'markdown',
  mjs: 'javascript',
  patch: 'diff',
  ps1: 'powershell',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  svg: 'xml',
  toml: 'ini',
  ts: 'typescript',
  tsx: 'typescript',
  vue: 'xml',
  yml: 'yaml',
  zsh: 'bash',
};

/** Longer code stays plain: colouring it and drawing the parts would be a task that one notices. */
const maxLength = 12_000;

let queue: Promise<unknown> = Promise.resolve();

/** Splits code into coloured parts; undefined when the language is not known. Works on one block at a time, while the browser is idle. */
export async function highlight(text: string, language: string): Promise<readonly Piece[] | undefined> {
  const given = language.toLowerCase();
  const name = Object.hasOwn(aliases, given) ? (aliases[given] ?? given) : given;
  const load = Object.hasOwn(languages, name) ? languages[name] : undefined;
  if (load === undefined || text.length > maxLength) return undefined;
  if (hljs.getLanguage(name) === undefined) hljs.registerLanguage(name, (await load()).default);
  const done = queue.then(whenIdle).then(() => toPieces(hljs.highlight(text, { language: name, ignoreIllegals: true }).value));
  queue = done.catch(() => undefined);
  return done;
}

function whenIdle(): Promise<void> {
  return new Promise((resolve) => {
    if ('requestIdleCallback' in globalThis) requestIdleCallback(() => resolve(), { timeout: 500 });
    else setTimeout(resolve, 0);
  });
}

const characters: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#x27;': "'" };

/**
 * Reads the markup of the library, which consists of `<span class="…">`, `</span>` and escaped text: the page may not turn texts into
 * markup, and only the text and the classes are wanted.
 */
export function toPieces(markup: string): readonly Piece[] {
  const pieces: Piece[] = [];
  const open: string[] = [];
  for (const { 0: found, 1: kind } of markup.matchAll(/<span class="hljs-([\w-]+)[^"]*">|<[^>]*>|[^<]+/g)) {
    if (kind !== undefined) open.push(kind);
    else if (found.startsWith('</')) open.pop();
    // A part in another language.
    else if (found.startsWith('<')) open.push(open.at(-1) ?? '');
    else pieces.push({ kind: open.at(-1) || undefined, text: found.replaceAll(/&(?:amp|lt|gt|quot|#x27);/g, (one) => characters[one] ?? one) });
  }
  return pieces;
}
