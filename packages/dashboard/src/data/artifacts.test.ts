import { expect, test } from 'vitest';
import { artifactKind, artifactOf, namedFile } from './artifacts.ts';

const page = (title: string, body: string) => `<!doctype html><title>${title}</title>${body}`;
const answer = (...blocks: readonly string[]) => ({ role: 'assistant' as const, text: blocks.map((one) => `Here:\n\n${one}\n\nDone.`).join('\n') });

test('pages, pictures and documents can be opened; other code cannot', () => {
  expect([
    artifactKind('html', ''),
    artifactKind('svg', ''),
    artifactKind('xml', '<?xml version="1.0"?>\n<svg viewBox="0 0 1 1"></svg>'),
    artifactKind('markdown title=plan.md', ''),
    artifactKind('xml', '<rss></rss>'),
    artifactKind('ts', '<svg>'),
    artifactKind(undefined, ''),
    artifactKind('constructor', ''),
  ]).toEqual(['html', 'svg', 'svg', 'markdown', undefined, undefined, undefined, undefined]);
});

test('blocks with the same title or file name are versions', () => {
  const first = page('Clock', 'one');
  const second = page('Clock', 'two');
  const messages = [
    answer(`\`\`\`html\n${first}\n\`\`\``, `\`\`\`html\n${page('Other', '')}\n\`\`\``),
    { role: 'user' as const, text: `\`\`\`html\n${page('Clock', 'mine')}\n\`\`\`` },
    answer(`~~~~html\n${second}\n~~~~`, '````md plan.md\n# Plan\n```ts\ncode\n```\n````', '```md plan.md\n# New plan\n```', '```html\nopen'),
  ];
  expect(artifactOf('html', second, messages)).toEqual({ kind: 'html', title: 'Clock', versions: [first, second] });
  expect(artifactOf('md plan.md', '# New plan', messages)).toEqual({
    kind: 'markdown',
    title: 'plan.md',
    versions: ['# Plan\n```ts\ncode\n```', '# New plan'],
  });
  expect(artifactOf('svg', '<svg></svg>', messages)).toEqual({ kind: 'svg', title: 'Picture', versions: ['<svg></svg>'] });
});

test.each([
  ['ts title=answer.ts', 'answer.ts'],
  ['ts "src/answer.test.ts"', 'answer.test.ts'],
  ['ts', undefined],
  ['file.ts', undefined],
  [undefined, undefined],
])('the file name in %j', (info, name) => expect(namedFile(info)).toBe(name));
